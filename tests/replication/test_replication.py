"""Records on their way from a producer to the replicas and back to the producer, between nodes of one process."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.common.steps import to_the_end
from ottla.storage.disk import Disk
from ottla.storage.log import Log
from tests.replication.cluster import Cluster, Node, until
from tests.support.raw_client import batch_of, produce_request


async def produce(node: Node, *values: bytes, acks: int = -1, timeout_ms: int = 30_000, partition: int = 0) -> Any:
    request = produce_request("topic", batch_of(*values), acks=acks, partition=partition)
    request.timeout_ms = timeout_ms
    response = await node.call(request, 9)
    return response.responses[0].partition_responses[0]


async def test_acks_all_is_answered_when_all_replicas_have_the_records(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]
        for number in range(3):
            line = await asyncio.wait_for(produce(leader, b"x" * 100), 60)
            assert (line.error_code, line.base_offset) == (0, number)
            assert all(node.log().log_end_offset == number + 1 for node in cluster.nodes.values())
            assert leader.log().high_watermark == number + 1
        await until(lambda: all(node.log().high_watermark == 3 for node in cluster.nodes.values()))
        assert cluster.nodes[2].content() == cluster.nodes[3].content() == leader.content() != b""


async def test_acks_all_waits_for_a_slow_replica_and_acks_1_does_not(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]
        cluster.cut(3)
        assert (await asyncio.wait_for(produce(leader, b"x", acks=1), 60)).error_code == 0
        waiting = asyncio.ensure_future(produce(leader, b"y"))
        await until(lambda: cluster.nodes[2].log().log_end_offset == 2)
        assert not waiting.done() and leader.log().high_watermark == 0
        cluster.heal()
        assert (await asyncio.wait_for(waiting, 60)).error_code == 0


async def test_who_waits_longer_than_it_wants_to_is_told(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        cluster.cut(3)
        line = await asyncio.wait_for(produce(cluster.nodes[1], b"x", timeout_ms=20), 60)
        assert line.error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_who_waits_behind_one_that_gave_up_is_told_of_what_is_committed(tmp_path: Path) -> None:
    """Answers keep the order of the requests; a repeated batch is behind one whose replica does not come."""
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "3600000"}) as cluster:
        cluster.create_topic()
        leader = cluster.nodes[1]

        async def repeat(timeout_ms: int) -> Any:
            batch = batch_of(b"once", producer_id=1, producer_epoch=0, base_sequence=0)
            request = produce_request("topic", batch)
            request.timeout_ms = timeout_ms
            return (await leader.call(request, 9)).responses[0].partition_responses[0]

        assert (await asyncio.wait_for(repeat(60_000), 60)).base_offset == 0
        cluster.cut(3)
        giving_up = asyncio.ensure_future(produce(leader, b"x", timeout_ms=200))
        await until(lambda: leader.log().log_end_offset == 2)
        repeated = asyncio.ensure_future(repeat(3_600_000))
        assert (await asyncio.wait_for(giving_up, 60)).error_code == ErrorCode.REQUEST_TIMED_OUT
        line = await asyncio.wait_for(repeated, 60)
        assert (line.error_code, line.base_offset) == (0, 0)


async def test_a_replica_that_lags_leaves_and_comes_back(tmp_path: Path) -> None:
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "200"}) as cluster:
        cluster.create_topic(configs={"min.insync.replicas": "2"})
        leader = cluster.nodes[1]
        cluster.cut(3)
        line = await asyncio.wait_for(produce(leader, b"x"), 60)
        assert line.error_code == 0 and cluster.partition().isr == (1, 2)
        cluster.heal()
        await until(lambda: set(cluster.partition().isr) == {1, 2, 3})
        assert cluster.nodes[3].content() == leader.content()


async def test_nobody_waits_for_a_replica_that_was_fenced(tmp_path: Path) -> None:
    """It had everything a moment ago, and would be let in again if it fetched."""
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic(configs={"min.insync.replicas": "2"})
        leader = cluster.nodes[1]
        assert (await asyncio.wait_for(produce(leader, b"x"), 60)).error_code == 0
        cluster.cut(3)
        cluster.fence(3)
        to_the_end(leader.broker.isr_changes._look_for_stragglers())
        assert (await asyncio.wait_for(produce(leader, b"y"), 60)).error_code == 0
        assert cluster.partition().isr == (1, 2)


async def test_nobody_waits_for_a_replica_that_was_about_to_join_and_is_fenced(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic(configs={"min.insync.replicas": "2"})
        leader = cluster.nodes[1]
        assert (await asyncio.wait_for(produce(leader, b"x"), 60)).error_code == 0
        cluster.is_controller_there = False  # nobody answers its proposal
        cluster.change(isr=(1, 2))
        state = leader.led().replication
        assert state is not None
        leader.broker.isr_changes.consider(leader.led(), 3)
        await until(lambda: 3 in state.joining)
        cluster.cut(3)
        cluster.fence(3)
        cluster.is_controller_there = True  # it refuses, since 3 is gone
        assert (await asyncio.wait_for(produce(leader, b"y"), 60)).error_code == 0
        assert cluster.partition().isr == (1, 2)


async def test_with_too_few_in_sync_nothing_is_taken_and_nothing_is_committed(tmp_path: Path) -> None:
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "200"}) as cluster:
        cluster.create_topic(configs={"min.insync.replicas": "2"})
        leader = cluster.nodes[1]
        cluster.cut(2, 3)
        line = await asyncio.wait_for(produce(leader, b"x"), 60)
        assert line.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert (await produce(leader, b"y")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await produce(leader, b"z", acks=1)).error_code == 0
        assert leader.log().high_watermark == 0 and leader.log().log_end_offset == 2
        cluster.heal()
        await until(lambda: leader.log().high_watermark == 2)
        assert (await asyncio.wait_for(produce(leader, b"a"), 60)).error_code == 0


async def test_a_new_leader_goes_on_and_the_old_ones_tail_is_cut(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        old, new = cluster.nodes[1], cluster.nodes[2]
        assert (await asyncio.wait_for(produce(old, b"kept"), 60)).error_code == 0
        cluster.cut(1)
        waiting = asyncio.ensure_future(produce(old, b"lost"))
        await until(lambda: old.log().log_end_offset == 2)
        cluster.deaf = {1}
        cluster.change(leader=2, isr=(2, 3))
        assert (await asyncio.wait_for(produce(new, b"new"), 60)).base_offset == 1
        assert not waiting.done()
        cluster.deaf = set()
        cluster.heal()
        cluster.publish(cluster.image)
        assert (await asyncio.wait_for(waiting, 60)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await until(lambda: set(cluster.partition().isr) == {1, 2, 3})
        await until(lambda: old.content() == new.content())
        assert (await produce(old, b"x")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert old.log().leader_epochs.entries == new.log().leader_epochs.entries == [(0, 0), (1, 1)]


async def send(node: Node, sequence: int) -> tuple[int, int]:
    """One record of an idempotent producer: the error, and the offset."""
    batch = batch_of(b"%d" % sequence, producer_id=1, producer_epoch=0, base_sequence=sequence)
    answer = await asyncio.wait_for(node.call(produce_request("topic", batch), 9), 60)
    line = answer.responses[0].partition_responses[0]
    return line.error_code, line.base_offset


async def test_whoever_is_behind_a_batch_that_too_few_replicas_had_hears_of_no_gap(tmp_path: Path) -> None:
    """librdkafka would take a new epoch, and send again under it what is written already: it was there twice."""
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "200"}) as cluster:
        cluster.create_topic(configs={"min.insync.replicas": "2"})
        leader = cluster.nodes[1]
        cluster.cut(2, 3)
        assert (await send(leader, 0))[0] == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        for sequence in (0, 1):  # the one that is written already, and one that is not
            assert (await send(leader, sequence))[0] == ErrorCode.NOT_ENOUGH_REPLICAS
        cluster.heal()
        await until(lambda: len(cluster.partition().isr) == 3)
        assert (await send(leader, 2))[0] == ErrorCode.NOT_ENOUGH_REPLICAS
        assert [await send(leader, sequence) for sequence in range(3)] == [(0, 0), (0, 1), (0, 2)]
        assert leader.log().log_end_offset == 3


@pytest.mark.parametrize("led_by_nobody", [False, True])
async def test_whoever_is_behind_a_batch_that_came_too_early_hears_of_no_gap(
    tmp_path: Path, led_by_nobody: bool
) -> None:
    """A client may know of a new leader before that knows itself."""
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        new = cluster.nodes[2]
        assert await send(cluster.nodes[1], 0) == (0, 0)
        await until(lambda: new.log().log_end_offset == 1)
        if led_by_nobody:
            cluster.change(leader=-1)
        assert (await send(new, 1))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.change(leader=2)
        assert (await send(new, 2))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [await send(new, sequence) for sequence in (1, 2)] == [(0, 1), (0, 2)]


async def test_the_first_batch_of_a_producer_that_came_too_early_does_not_come_too_late(tmp_path: Path) -> None:
    """Of a producer that is not known any sequence is taken."""
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        new = cluster.nodes[2]
        assert (await send(new, 0))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.change(leader=2)
        assert (await send(new, 1))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [await send(new, sequence) for sequence in (0, 1)] == [(0, 0), (0, 1)]


class NoCuts(Disk):
    """Takes no truncation in a folder."""

    folder = ""

    def ftruncate(self, fd: int, size: int) -> None:
        if self.folder and self.folder in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().ftruncate(fd, size)


@pytest.mark.parametrize("has_hole", [False, True])
async def test_a_replica_that_cannot_be_cut_keeps_no_other_from_being_fetched(tmp_path: Path, has_hole: bool) -> None:
    disk = NoCuts()
    async with Cluster(tmp_path, disk=disk) as cluster:
        cluster.create_topic(replicas=[(1, 2), (1, 2)])
        old, new = cluster.nodes[1], cluster.nodes[2]
        for index in (0, 1):
            assert (await asyncio.wait_for(produce(old, b"kept", partition=index), 60)).error_code == 0
        cluster.cut(1)
        waiting = asyncio.ensure_future(produce(old, b"lost"))
        await until(lambda: old.log().log_end_offset == 2)
        cluster.deaf = {1}
        for index in (0, 1):
            cluster.change(index=index, leader=2, isr=(2,))
            assert (await asyncio.wait_for(produce(new, b"new", partition=index), 60)).base_offset == 1
        disk.folder = "node-1/topic-0"
        cluster.deaf = set()
        cluster.heal()
        if has_hole:
            old.log().hole = 1
        cluster.publish(cluster.image)
        await waiting
        await until(lambda: old.content(index=1) == new.content(index=1))
        disk.folder = ""
        await until(lambda: old.content() == new.content())
        assert old.log().hole is None


async def test_a_replica_whose_records_are_gone_at_the_leader_begins_anew(tmp_path: Path) -> None:
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "100"}) as cluster:
        cluster.create_topic()
        leader, late = cluster.nodes[1], cluster.nodes[3]
        assert (await produce(leader, b"x")).error_code == 0
        cluster.cut(3)
        for _ in range(3):
            assert (await asyncio.wait_for(produce(leader, b"x"), 60)).error_code == 0
        leader.log().delete_records(3)
        cluster.heal()
        await until(lambda: set(cluster.partition().isr) == {1, 2, 3})
        assert (late.log().log_start_offset, late.log().log_end_offset) == (3, 4)
        await until(lambda: cluster.nodes[2].log().log_start_offset == 3)


async def test_a_replica_begins_anew_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """DeleteRecords goes to any offset; batches are fetched whole."""
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "100"}) as cluster:
        cluster.create_topic()
        leader, late = cluster.nodes[1], cluster.nodes[3]
        assert (await produce(leader, b"x")).error_code == 0
        cluster.cut(3)
        assert (await asyncio.wait_for(produce(leader, b"a", b"b", b"c", b"d"), 60)).error_code == 0
        assert (await asyncio.wait_for(produce(leader, b"e"), 60)).error_code == 0
        leader.log().delete_records(3)
        cluster.heal()
        await until(lambda: set(cluster.partition().isr) == {1, 2, 3})
        await until(lambda: late.log().log_start_offset == 3)
        assert late.log().log_end_offset == 6
        assert late.content() == leader.content()


async def test_what_is_to_be_flushed_is_not_committed_earlier_when_replicas_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Cluster(tmp_path, 2) as cluster:
        cluster.create_topic(replicas=((1,),), configs={"flush.messages": "1"})
        leader = cluster.nodes[1]
        flush, may_flush = Log.flush_async, asyncio.Event()

        async def later(log: Log) -> None:
            await may_flush.wait()
            await flush(log)

        monkeypatch.setattr(Log, "flush_async", lambda log, up_to=None: later(log))
        waiting = asyncio.ensure_future(produce(leader, b"x"))
        await until(lambda: leader.log().log_end_offset == 1)
        cluster.change(replicas=(1, 2), adding=(2,))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert leader.log().high_watermark == 0
        may_flush.set()
        monkeypatch.undo()
        assert (await asyncio.wait_for(waiting, 60)).error_code == 0


@pytest.mark.parametrize("size", [100, 100_000])
async def test_a_long_log_is_fetched_in_pieces(tmp_path: Path, size: int) -> None:
    async with Cluster(tmp_path, properties={"replica.lag.time.max.ms": "100"}) as cluster:
        cluster.create_topic(configs={"segment.bytes": "1048576"})
        leader = cluster.nodes[1]
        cluster.cut(3)
        for _ in range(5_000_000 // size // 10):
            await produce(leader, b"x" * size, acks=1)
        cluster.heal()
        await until(lambda: cluster.nodes[3].log().log_end_offset == leader.log().log_end_offset)
        assert cluster.nodes[3].content() == leader.content()
        await until(lambda: set(cluster.partition().isr) == {1, 2, 3})


async def test_a_replica_joins_again_where_nothing_is_written(tmp_path: Path) -> None:
    """It has everything and names the partition no more, since it was in sync when it last did."""
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic()
        assert (await asyncio.wait_for(produce(cluster.nodes[1], b"x"), 60)).error_code == 0
        await until(lambda: all(node.log().high_watermark == 1 for node in cluster.nodes.values()))
        cluster.change(isr=(1,))
        await until(lambda: set(cluster.partition().isr) == {1, 2, 3})
