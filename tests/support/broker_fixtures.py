"""Fixtures around an in-process broker that the tests of one module share: `broker`, `client`, `make_topic`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.protocol.messages import MetadataRequest
from ottla.testing import Broker
from tests.support.raw_client import RawClient

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient.to(broker.bootstrap_servers) as connected:
        yield connected


@pytest.fixture
def make_topic(broker: Broker) -> Callable[..., str]:
    """`make_topic(partitions=2, retention_ms=5)`: a new topic with these settings."""

    def make(partitions: int = 1, **configs: Any) -> str:
        name = f"topic-{next(_NUMBERS)}"
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        broker.create_topic(name, partitions, settings)
        return name

    return make


def topic_id(client: RawClient, topic: str) -> bytes:
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    (found,) = client.call(request, 12).topics
    return bytes(found.topic_id)
