"""One broker and one registry for the tests of a file; each test has subjects of its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from ottla.testing import Broker, Registry

pytest.importorskip("confluent_kafka.schema_registry", reason="confluent-kafka's registry client is not installed")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[Registry]:
    with Registry(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def http(registry: Registry) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=registry.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name}-value"
