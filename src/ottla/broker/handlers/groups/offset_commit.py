"""OffsetCommit v2-10. Stores offsets of a group; topics by name, from v10 on by id.

A topic or partition that is not there gets its own error; what concerns the member or the group concerns them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.coordinators.groups.offset_pieces import answered_in_pieces
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.steps import Steps
from ottla.groups.offset_requests import CommitTopic
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

_TOPIC_IDS_SINCE = 10
_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(broker: Broker, context: RequestContext, request: OffsetCommitRequest) -> Steps[OffsetCommitResponse]:
    return answered_in_pieces(request, partial(_commit, broker, context.version))


def _commit(broker: Broker, version: int, request: OffsetCommitRequest) -> Steps[OffsetCommitResponse]:
    known, refused = _resolve(request, broker.image, version >= _TOPIC_IDS_SINCE)
    try:
        errors: Sequence[Sequence[ErrorCode]] = []
        if known:
            out = broker.groups.shard(request.group_id).commit(request, version, known)
            errors = yield from answered(out)
    except ApiError as error:
        return _refused(request, error.code)
    return _answer(request, errors, refused)


def _resolve(
    request: OffsetCommitRequest, image: ClusterImage, with_ids: bool
) -> tuple[list[CommitTopic], dict[tuple[int, int], ErrorCode]]:
    """What can be committed, and the places (topic, partition) in the request of what cannot."""
    known: list[CommitTopic] = []
    refused: dict[tuple[int, int], ErrorCode] = {}
    for place, topic in enumerate(request.topics):
        topic_id = TopicId(topic.topic_id) if with_ids else ZERO_TOPIC_ID
        found = image.topics_by_id.get(topic_id) if with_ids else image.topics.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        missing = ErrorCode.UNKNOWN_TOPIC_ID if with_ids and found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = topic.partitions
        if not all(0 <= partition.partition_index < count for partition in partitions):
            places = [at for at, partition in enumerate(partitions) if not 0 <= partition.partition_index < count]
            refused.update(dict.fromkeys(((place, at) for at in places), missing))
            partitions = [partition for partition in partitions if 0 <= partition.partition_index < count]
        if found is not None and partitions:
            known.append(CommitTopic(found.name, topic_id, partitions))
    return known, refused


def _answer(
    request: OffsetCommitRequest,
    errors: Sequence[Sequence[ErrorCode]],
    refused: Mapping[tuple[int, int], ErrorCode],
) -> OffsetCommitResponse:
    outcomes = (error for row in errors for error in row)
    topics = []
    for place, topic in enumerate(request.topics):
        partitions = [
            _Partition(
                partition_index=partition.partition_index,
                error_code=refused[place, at] if (place, at) in refused else next(outcomes),
            )
            for at, partition in enumerate(topic.partitions)
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
                    _Partition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
