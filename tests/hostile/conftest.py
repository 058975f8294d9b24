"""A broker process to mistreat, and the oracle: it lives, keeps its memory, and a good client notices nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import CreateTopicsRequest
from tests.support.brokers import OttlaProcess
from tests.support.neighbour import Neighbour
from tests.support.raw_client import RawClient

# What a broker may grow by while it is under attack, besides what the attack is entitled to (a frame, a batch).
GROWTH_BYTES_MAX = 120 << 20

TOPICS = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "recompressed": {"compression.type": "lz4"},
    "uncompressed": {"compression.type": "uncompressed"},
}

Mistreated = Callable[..., AbstractContextManager[Neighbour]]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaProcess]:
    with OttlaProcess(tmp_path_factory.mktemp("victim")) as broker:
        make_topics(broker.bootstrap)
        yield broker


def make_topics(bootstrap: str) -> None:
    setting = CreateTopicsRequest.CreatableTopicConfig
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[setting(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in TOPICS.items()
    ]
    with RawClient.to(bootstrap) as client:
        answer = client.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert {ErrorCode(one.error_code) for one in answer.topics} == {ErrorCode.NONE}


@pytest.fixture
def mistreated(victim: OttlaProcess) -> Mistreated:
    """`with mistreated(): ...` around what is done to the broker."""

    @contextlib.contextmanager
    def watch(growth_bytes_max: int = GROWTH_BYTES_MAX) -> Iterator[Neighbour]:
        before = victim.rss_bytes()
        with Neighbour(victim) as neighbour:
            yield neighbour
            grown = victim.rss_bytes() - before
        assert victim.running, victim.log_tail()
        assert grown < growth_bytes_max, f"the broker grew by {grown >> 20} MB"

    return watch


@pytest.fixture
def client(victim: OttlaProcess) -> Iterator[RawClient]:
    with RawClient.to(victim.bootstrap) as connected:
        yield connected
