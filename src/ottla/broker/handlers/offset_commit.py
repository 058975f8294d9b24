"""OffsetCommit v2-10. Stores offsets of a group; topics by name, from v10 on by id.

A topic that does not exist gets its own error; what concerns the member or the group concerns every partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.groups.offset_requests import CommitTopic
from ottla.protocol.codec import Message
from ottla.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.metadata.image import ClusterImage

_TOPIC_IDS_SINCE = 10
_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(broker: Broker, context: RequestContext, request: OffsetCommitRequest) -> Message | Awaitable[Message]:
    with_ids = context.version >= _TOPIC_IDS_SINCE
    known, unknown = _resolve(request, broker.image, with_ids)
    try:
        if not known:
            return _answer(request, [], unknown, with_ids)
        out = broker.groups.shard(request.group_id).commit(request, context.version, known)
        if out.error is None:
            return _later(broker, out, request, unknown, with_ids)
        if out.error is not ErrorCode.NONE:
            raise ApiError(out.error)
        return _answer(request, out.reply, unknown, with_ids)
    except ApiError as error:
        return _refused(request, error.code)


async def _later(
    broker: Broker, out: Any, request: OffsetCommitRequest, unknown: Sequence[int], with_ids: bool
) -> Message:
    try:
        await broker.groups.settled(out)
        return _answer(request, out.reply, unknown, with_ids)
    except ApiError as error:
        return _refused(request, error.code)


def _resolve(request: OffsetCommitRequest, image: ClusterImage, with_ids: bool) -> tuple[list[CommitTopic], list[int]]:
    """Topics that exist, and the places in the request of those that do not."""
    known: list[CommitTopic] = []
    unknown: list[int] = []
    for place, topic in enumerate(request.topics):
        if with_ids:
            found = image.topics_by_id.get(TopicId(topic.topic_id))
            topic_id = TopicId(topic.topic_id)
        else:
            found = image.topics.get(topic.name)
            topic_id = ZERO_TOPIC_ID
        if found is None:
            unknown.append(place)
        else:
            known.append(CommitTopic(found.name, topic_id, topic.partitions))
    return known, unknown


def _answer(
    request: OffsetCommitRequest, errors: Sequence[Sequence[ErrorCode]], unknown: Sequence[int], with_ids: bool
) -> OffsetCommitResponse:
    missing = ErrorCode.UNKNOWN_TOPIC_ID if with_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rows = iter(errors)
    topics = []
    for place, topic in enumerate(request.topics):
        row = [missing] * len(topic.partitions) if place in unknown else next(rows)
        partitions = [
            _Partition(partition_index=one.partition_index, error_code=error)
            for one, error in zip(topic.partitions, row, strict=True)
        ]
        topics.append(_Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return OffsetCommitResponse(topics=topics)


def _refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            _Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    _Partition(partition_index=one.partition_index, error_code=error) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
