"""pytest fixtures; found by pytest itself once Ottla is installed. Nothing is imported until a test asks."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture(scope="session")
def ottla_broker() -> Iterator[Broker]:
    """One broker for all tests of the session; give each test its own topic with `ottla_topic`."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def ottla_topic(ottla_broker: Broker, request: pytest.FixtureRequest) -> str:
    """A fresh topic of one partition, named after the test."""
    stem = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:100]
    name = f"{stem}-{uuid.uuid4().hex[:8]}"
    ottla_broker.create_topic(name)
    return name
