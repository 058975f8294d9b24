"""Where a topic asks for a sync of each record, a replica that has not synced what it has does not count as having it:
whichever leader it came from, whoever leads meanwhile, and however often the sync fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.storage.flushing.log_flush import FlushFuture
from ottla.storage.log import Log
from tests.replication.cluster import Cluster, until
from tests.replication.test_replication import produce

EACH = {"flush.messages": "1"}
# Nobody leaves because it is slow.
PATIENT = {"replica.lag.time.max.ms": "3600000"}


class SlowSyncs:
    """Syncs of one node wait, or fail, until they are let go."""

    def __init__(self, node: int) -> None:
        self._folder = f"node-{node}"
        self._real = Log.flush_async
        self._waiting: list[tuple[Log, FlushFuture]] = []
        self.are_held = True
        self.fail = False
        self.tried = 0

    def flush_async(self, log: Log, up_to: int | None = None) -> FlushFuture:
        if not self.are_held or self._folder not in str(log.dir):
            return self._real(log, up_to)
        self.tried += 1
        synced = FlushFuture()
        if self.fail:
            synced.set_exception(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "No space left on device"))
        else:
            self._waiting.append((log, synced))
        return synced

    async def let_go(self) -> None:
        self.are_held = False
        for log, synced in self._waiting:
            await self._real(log)
            synced.set_result(None)


def _slow_syncs(node: int, monkeypatch: pytest.MonkeyPatch) -> SlowSyncs:
    syncs = SlowSyncs(node)
    monkeypatch.setattr(Log, "flush_async", lambda log, up_to=None: syncs.flush_async(log, up_to))
    return syncs


@pytest.fixture
def syncs_of_2(monkeypatch: pytest.MonkeyPatch) -> SlowSyncs:
    return _slow_syncs(2, monkeypatch)


async def _is_written(cluster: Cluster, syncs: SlowSyncs) -> None:
    """All have the record, and node 2 has begun to sync it."""
    await until(lambda: all(node.log().log_end_offset == 1 for node in cluster.nodes.values()) and syncs.tried > 0)


async def _a_while() -> None:
    """Time enough for many fetches."""
    await asyncio.sleep(0.3)


async def test_a_follower_whose_sync_fails_acknowledges_nothing(tmp_path: Path, syncs_of_2: SlowSyncs) -> None:
    syncs_of_2.fail = True
    async with Cluster(tmp_path, properties=PATIENT) as cluster:
        cluster.create_topic(configs=EACH)
        producing = asyncio.ensure_future(produce(cluster.nodes[1], b"x"))
        await until(lambda: syncs_of_2.tried > 2)
        assert cluster.nodes[1].log().high_watermark == 0 and not producing.done()
        await syncs_of_2.let_go()
        assert (await asyncio.wait_for(producing, 60)).error_code == 0
        assert cluster.nodes[2].log().recovery_point == 1


async def test_a_follower_acknowledges_to_no_other_leader_what_it_has_not_synced(
    tmp_path: Path, syncs_of_2: SlowSyncs
) -> None:
    async with Cluster(tmp_path, properties=PATIENT) as cluster:
        cluster.create_topic(configs=EACH)
        producing = asyncio.ensure_future(produce(cluster.nodes[1], b"x"))
        await _is_written(cluster, syncs_of_2)
        cluster.change(leader=3)
        await _a_while()
        assert cluster.nodes[3].log().high_watermark == 0
        await syncs_of_2.let_go()
        await until(lambda: cluster.nodes[3].log().high_watermark == 1)
        assert cluster.nodes[2].log().recovery_point == 1
        assert (await asyncio.wait_for(producing, 60)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_new_leader_commits_nothing_that_it_has_not_synced(tmp_path: Path, syncs_of_2: SlowSyncs) -> None:
    async with Cluster(tmp_path, properties=PATIENT) as cluster:
        cluster.create_topic(configs=EACH)
        producing = asyncio.ensure_future(produce(cluster.nodes[1], b"x"))
        await _is_written(cluster, syncs_of_2)
        cluster.change(leader=2)
        await _a_while()
        assert cluster.nodes[2].log().high_watermark == 0
        await syncs_of_2.let_go()
        await until(lambda: cluster.nodes[2].log().high_watermark == 1)
        assert cluster.nodes[2].log().recovery_point == 1
        assert (await asyncio.wait_for(producing, 60)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_whose_disk_is_full_tries_to_sync_now_and_then_and_not_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = _slow_syncs(1, monkeypatch)
    syncs.fail = True
    async with Cluster(tmp_path, properties=PATIENT) as cluster:
        cluster.create_topic(configs=EACH)
        line = await asyncio.wait_for(produce(cluster.nodes[1], b"x"), 60)
        assert line.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        before = syncs.tried
        await _a_while()
        assert syncs.tried - before < 10
        await syncs.let_go()
        await until(lambda: cluster.nodes[1].log().high_watermark == 1)
