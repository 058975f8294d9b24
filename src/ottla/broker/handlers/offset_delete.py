"""OffsetDelete v0. Forgets offsets of topics that the group does not read."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.codec import Message
from ottla.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: Broker, context: RequestContext, request: OffsetDeleteRequest) -> Message | Awaitable[Message]:
    topics = broker.image.topics
    known = [
        (topic.name, [one.partition_index for one in topic.partitions])
        for topic in request.topics
        if topic.name in topics
    ]
    out = broker.groups.shard(request.group_id).delete_offsets(request.group_id, known)

    def make(errors: Sequence[Sequence[ErrorCode]]) -> OffsetDeleteResponse:
        rows = dict(zip((name for name, _ in known), errors, strict=True))
        return OffsetDeleteResponse(topics=[_topic(topic, rows.get(topic.name)) for topic in request.topics])

    return broker.groups.reply(out, make)


def _topic(
    topic: OffsetDeleteRequest.OffsetDeleteRequestTopic, errors: Sequence[ErrorCode] | None
) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
    row = errors or [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(topic.partitions)
    return OffsetDeleteResponse.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=error)
            for one, error in zip(topic.partitions, row, strict=True)
        ],
    )
