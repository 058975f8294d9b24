"""Replicas that are copied under a throttle (KIP-73): bytes counted on a clock that only the test moves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.broker.partitions import replica_fetcher, replica_sessions
from ottla.broker.partitions.replica_throttles import ReplicaThrottles, throttled_partitions
from ottla.replication.quota import UNLIMITED, ReplicationQuota
from tests.replication.cluster import Cluster, until
from tests.replication.test_replication import produce

RATE = 100_000
BATCH = 10_000
BATCHES = 80
SECONDS = 5


class HandClock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@pytest.mark.parametrize("side", ["leader", "follower"])
@pytest.mark.parametrize("replicas", ["*", "0:1,0:2"])
async def test_a_copy_is_as_fast_as_its_throttle(
    side: str, replicas: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (replica_fetcher, replica_sessions):
        monkeypatch.setattr(module, "HELD_BACK_MS", 1)  # of real time
    properties = {f"{side}.replication.throttled.rate": str(RATE), "replica.fetch.max.bytes": str(BATCH)}
    clock = HandClock()
    async with Cluster(tmp_path, 2, properties) as cluster:
        for node in cluster.nodes.values():
            node.broker.throttles = ReplicaThrottles(node.broker, clock)
        cluster.cut(2)
        cluster.create_topic(replicas=[(1, 2)], configs={f"{side}.replication.throttled.replicas": replicas})
        cluster.change(isr=(1,))
        for _ in range(BATCHES):
            await produce(cluster.nodes[1], b"x" * BATCH, acks=1)
        cluster.heal()
        copied = []
        for _ in range(SECONDS * 10):
            clock.ms += 100
            copied.append(await _settled(cluster))
        assert RATE * SECONDS * 0.85 <= copied[-1] <= RATE * SECONDS * 1.15
        assert cluster.partition().isr == (1,)
        for _ in range(50):  # the rest
            clock.ms += 100
            await _settled(cluster)
        await until(lambda: cluster.nodes[2].log().log_end_offset == BATCHES)


async def _settled(cluster: Cluster) -> int:
    """The bytes that the follower has when nothing more comes."""
    size, quiet = -1, 0
    while quiet < 8:
        await asyncio.sleep(0.001)
        now = cluster.nodes[2].log().size_bytes
        quiet = quiet + 1 if now == size else 0
        size = now
    return int(size)


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_what_is_in_sync_is_not_held_back(side: str, tmp_path: Path) -> None:
    async with Cluster(tmp_path, 2, {f"{side}.replication.throttled.rate": "1"}) as cluster:
        for node in cluster.nodes.values():
            node.broker.throttles = ReplicaThrottles(node.broker, HandClock())
        cluster.create_topic(replicas=[(1, 2)], configs={f"{side}.replication.throttled.replicas": "*"})
        for _ in range(5):
            assert (await asyncio.wait_for(produce(cluster.nodes[1], b"x" * 1000), 60)).error_code == 0


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_other_partitions_are_not_held_back(side: str, tmp_path: Path) -> None:
    properties = {f"{side}.replication.throttled.rate": "1", "replica.fetch.max.bytes": "1000"}
    async with Cluster(tmp_path, 2, properties) as cluster:
        for node in cluster.nodes.values():
            node.broker.throttles = ReplicaThrottles(node.broker, HandClock())
        cluster.cut(2)
        configs = {f"{side}.replication.throttled.replicas": "0:1,0:2"}
        cluster.create_topic(replicas=[(1, 2), (1, 2)], configs=configs)
        for index in (0, 1):
            cluster.change(index=index, isr=(1,))
            for _ in range(10):
                await produce(cluster.nodes[1], b"x" * 1000, acks=1, partition=index)
        cluster.heal()
        await until(lambda: cluster.nodes[2].log(index=1).log_end_offset == 10)
        await until(lambda: 2 in cluster.partition(index=1).isr)
        assert 2 not in cluster.partition(index=0).isr


@pytest.mark.parametrize(
    ("value", "partitions"),
    [("*", None), ("", frozenset()), ("0:1, 3:1,4:2", frozenset({0, 3})), ("7:2", frozenset())],
)
def test_a_topic_names_replicas_by_partition_and_broker(value: str, partitions: frozenset[int] | None) -> None:
    assert throttled_partitions(value, 1) == partitions


def test_a_rate_is_that_of_the_last_windows() -> None:
    quota = ReplicationQuota(windows=3, window_ms=1000)
    assert not quota.is_exceeded(100, 0)
    quota.record(100, 0)
    assert not quota.is_exceeded(100, 0) and quota.is_exceeded(100, 0, more=1)
    quota.record(200, 500)
    assert quota.is_exceeded(100, 2_900)
    assert not quota.is_exceeded(100, 3_000), "what was long ago does not count"
    quota.record(1 << 40, 3_100)
    assert not quota.is_exceeded(UNLIMITED, 3_100)
