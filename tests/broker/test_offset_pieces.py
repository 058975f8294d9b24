"""Thousands of offsets in one request: written in pieces, answered as one."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.coordinators.groups.offset_pieces import OFFSETS_AT_ONCE, answered_in_pieces
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, to_the_end
from ottla.protocol import messages as m
from tests.support.loop_broker import LoopBroker

COMMIT = m.OffsetCommitRequest
COUNT = 2 * OFFSETS_AT_ONCE + 50


def commit_of(*counts: int) -> COMMIT:
    line = COMMIT.OffsetCommitRequestPartition
    topics = [
        COMMIT.OffsetCommitRequestTopic(
            name=f"t{number}", partitions=[line(partition_index=n, committed_offset=n + 1) for n in range(count)]
        )
        for number, count in enumerate(counts)
    ]
    return COMMIT(group_id="g", generation_id_or_member_epoch=-1, topics=topics)


def test_pieces_are_small_and_the_answer_is_in_the_order_of_the_request() -> None:
    request = commit_of(3, 0, COUNT, 1, *[1] * COUNT)
    sizes = []

    def work(piece: COMMIT) -> Steps[m.OffsetCommitResponse]:
        yield None
        sizes.append(sum(max(1, len(topic.partitions)) for topic in piece.topics))
        return m.OffsetCommitResponse(
            topics=[
                m.OffsetCommitResponse.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        m.OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=one.partition_index)
                        for one in topic.partitions
                    ],
                )
                for topic in piece.topics
            ]
        )

    topics = to_the_end(answered_in_pieces(request, work)).topics
    assert max(sizes) <= OFFSETS_AT_ONCE
    asked = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    assert [(topic.name, [one.partition_index for one in topic.partitions]) for topic in topics] == asked


async def test_all_are_committed_fetched_and_deleted(tmp_path: Path) -> None:
    async with LoopBroker(tmp_path) as broker:
        await broker.create_topic("t0", COUNT)
        await broker.call(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        await broker.loaded()
        request = commit_of(COUNT + 1)
        answer = await broker.call(request, 8)
        codes = [one.error_code for one in answer.topics[0].partitions]
        assert codes == [ErrorCode.NONE] * COUNT + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
        fetched = await broker.call(m.OffsetFetchRequest(groups=[group]), 8)
        (topic,) = fetched.groups[0].topics
        assert {one.partition_index: one.committed_offset for one in topic.partitions} == {
            n: n + 1 for n in range(COUNT)
        }
        line = m.OffsetDeleteRequest.OffsetDeleteRequestPartition
        doomed = m.OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name="t0", partitions=[line(partition_index=n) for n in range(COUNT)]
        )
        deleted = await broker.call(m.OffsetDeleteRequest(group_id="g", topics=[doomed]), 0)
        assert {one.error_code for one in deleted.topics[0].partitions} == {ErrorCode.NONE}
        fetched = await broker.call(m.OffsetFetchRequest(groups=[group]), 8)
        assert not fetched.groups[0].topics
