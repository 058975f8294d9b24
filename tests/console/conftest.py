"""One broker and one console for the tests of a file; each test has topics and groups of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ottla.testing import Broker
from tests.console.running import RunningConsole, Visitor


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "2"}) as running:
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker) -> Iterator[RunningConsole]:
    with RunningConsole(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture
def visitor(console: RunningConsole) -> Visitor:
    return console.visitor()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"{request.node.originalname.removeprefix('test_')[:40]}-{uuid.uuid4().hex[:6]}"
