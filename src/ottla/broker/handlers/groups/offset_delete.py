"""OffsetDelete v0. Forgets offsets of topics that the group does not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester, tell
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.coordinators.groups.offset_pieces import answered_in_pieces
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse


def handle(broker: Broker, context: RequestContext, request: OffsetDeleteRequest) -> Steps[OffsetDeleteResponse]:
    return answered_in_pieces(request, partial(_delete, broker, context.requester))


def _delete(broker: Broker, by: Requester, request: OffsetDeleteRequest) -> Steps[OffsetDeleteResponse]:
    topics = broker.image.topics
    counts = {topic.name: len(topics[topic.name].partitions) for topic in request.topics if topic.name in topics}
    known = [
        (topic.name, [row.partition_index for row in topic.partitions if 0 <= row.partition_index < counts[topic.name]])
        for topic in request.topics
        if topic.name in counts
    ]
    out = broker.groups.shard(request.group_id).delete_offsets(request.group_id, known)
    errors: Sequence[Sequence[ErrorCode]] = yield from answered(out)
    outcome = {
        (name, partition): error
        for (name, partitions), row in zip(known, errors, strict=True)
        for partition, error in zip(partitions, row, strict=True)
    }
    for name, partitions in known:
        gone = [partition for partition in partitions if outcome[name, partition] is ErrorCode.NONE]
        if gone:
            tell("offsets deleted", by, group=request.group_id, topic=name, partitions=gone)
    return OffsetDeleteResponse(topics=[_topic(topic, outcome) for topic in request.topics])


def _topic(
    topic: OffsetDeleteRequest.OffsetDeleteRequestTopic, outcome: Mapping[tuple[str, int], ErrorCode]
) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteResponse.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.OffsetDeleteResponsePartition(
                partition_index=row.partition_index,
                error_code=outcome.get((topic.name, row.partition_index), missing),
            )
            for row in topic.partitions
        ],
    )
