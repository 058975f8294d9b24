"""OffsetDelete v0. Forgets offsets of topics that the group does not read."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester, tell
from ottla.broker.coordinators.offset_pieces import in_pieces, is_large
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.codec import Message
from ottla.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(
    broker: Broker, context: RequestContext, request: OffsetDeleteRequest
) -> Message | Awaitable[Message] | Steps[Message]:
    return (_delete_in_pieces if is_large(request) else _delete)(broker, context.requester, request)


def _delete_in_pieces(broker: Broker, by: Requester, request: OffsetDeleteRequest) -> Steps[Message]:
    return OffsetDeleteResponse(topics=(yield from in_pieces(request, partial(_delete, broker, by))))


def _delete(broker: Broker, by: Requester, request: OffsetDeleteRequest) -> Message | Awaitable[Message]:
    topics = broker.image.topics
    counts = {one.name: len(topics[one.name].partitions) for one in request.topics if one.name in topics}
    known = [
        (topic.name, [one.partition_index for one in topic.partitions if 0 <= one.partition_index < counts[topic.name]])
        for topic in request.topics
        if topic.name in counts
    ]
    out = broker.groups.shard(request.group_id).delete_offsets(request.group_id, known)

    def make(errors: Sequence[Sequence[ErrorCode]]) -> OffsetDeleteResponse:
        outcome = {
            (name, partition): error
            for (name, partitions), row in zip(known, errors, strict=True)
            for partition, error in zip(partitions, row, strict=True)
        }
        for name, partitions in known:
            gone = [one for one in partitions if outcome[name, one] is ErrorCode.NONE]
            if gone:
                tell("offsets deleted", by, group=request.group_id, topic=name, partitions=gone)
        return OffsetDeleteResponse(topics=[_topic(topic, outcome) for topic in request.topics])

    return broker.groups.reply(out, make)


def _topic(
    topic: OffsetDeleteRequest.OffsetDeleteRequestTopic, outcome: Mapping[tuple[str, int], ErrorCode]
) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteResponse.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.OffsetDeleteResponsePartition(
                partition_index=one.partition_index,
                error_code=outcome.get((topic.name, one.partition_index), missing),
            )
            for one in topic.partitions
        ],
    )
