"""OffsetFetch v1-10. Committed offsets of one group (v1-7) or several; all topics when none are named (v2+).

Topics go by name, from v10 on by id: then an offset committed under another id of the same name is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.steps import Steps, all_of
from ottla.groups.offset_requests import FetchTopic, check_fetch, fetch_offset
from ottla.groups.offsets import CommittedOffset
from ottla.groups.state import GroupState
from ottla.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

_TOP_LEVEL_ERROR_SINCE = 2
_SEVERAL_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_NO_OFFSET = CommittedOffset(-1)

_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Topic = OffsetFetchResponse.OffsetFetchResponseTopics
_Partition = OffsetFetchResponse.OffsetFetchResponsePartitions
_Asked = OffsetFetchRequest.OffsetFetchRequestGroup


def handle(broker: Broker, context: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    version = context.version
    if version >= _SEVERAL_GROUPS_SINCE:
        asked: Sequence[_Asked] = request.groups
    else:
        topics = request.topics
        asked = [_Asked(group_id=request.group_id, topics=None if topics is None else _as_group_topics(topics))]
    groups = yield from all_of(_fetch(broker, group, request.require_stable, version) for group in _told_once(asked))
    if version >= _SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    return _as_one_group(groups[0], asked[0], version)


def _told_once(asked: Sequence[_Asked]) -> Iterator[_Asked]:
    """All offsets of a group are told once: otherwise a small request could ask for an answer without end."""
    seen: set[str] = set()
    for group in asked:
        if group.topics is not None:
            yield group
        elif group.group_id not in seen:
            seen.add(group.group_id)
            yield group


# --- one group


def _fetch(broker: Broker, asked: _Asked, require_stable: bool, version: int) -> Steps[_Group]:
    try:
        shard = broker.groups.shard(asked.group_id)
        group = yield from _look_up(broker, shard.state, asked, require_stable, version)
        yield from answered(shard.read(lambda _: None))  # what was seen may not be durable yet
        return group
    except ApiError as error:
        return _Group(group_id=asked.group_id, error_code=error.code)


def _look_up(broker: Broker, state: GroupState, asked: _Asked, require_stable: bool, version: int) -> Steps[_Group]:
    with_ids = version >= _TOPIC_IDS_SINCE
    check_fetch(state, asked.group_id, asked.member_id, asked.member_epoch)
    if asked.topics is None:
        found = yield from _all_topics(broker, state, asked, require_stable, with_ids)
        return _Group(group_id=asked.group_id, topics=found)
    topics = []
    for topic in asked.topics:
        name, topic_id = topic.name, ZERO_TOPIC_ID
        if with_ids:
            topic_id = TopicId(topic.topic_id)
            image = broker.image.topics_by_id.get(topic_id)
            if image is None:
                lines = [_line(index, _NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
                topics.append(_Topic(topic_id=topic_id, partitions=lines))
                yield None
                continue
            name = image.name
        wanted = FetchTopic(name, topic_id, topic.partition_indexes)
        topics.append((yield from _topic(state, asked.group_id, wanted, require_stable)))
    return _Group(group_id=asked.group_id, topics=topics)


def _all_topics(
    broker: Broker, state: GroupState, asked: _Asked, require_stable: bool, with_ids: bool
) -> Steps[list[_Topic]]:
    topics = []
    held = state.offsets.of_group(asked.group_id)
    for name, partitions in [(name, list(partitions)) for name, partitions in held.items()]:
        topic_id = ZERO_TOPIC_ID
        if with_ids:
            found = broker.image.topics.get(name)
            if found is None:
                continue  # a client that speaks in ids could not understand it
            topic_id = found.id
        wanted = FetchTopic(name, topic_id, partitions)
        topics.append((yield from _topic(state, asked.group_id, wanted, require_stable)))
    return topics


def _topic(state: GroupState, group_id: str, topic: FetchTopic, require_stable: bool) -> Steps[_Topic]:
    lines = []
    for partition in topic.partitions:
        found = fetch_offset(state, group_id, topic, partition, require_stable=require_stable)
        if isinstance(found, ErrorCode):
            lines.append(_line(partition, _NO_OFFSET, found))
        else:
            lines.append(_line(partition, found or _NO_OFFSET, ErrorCode.NONE))
        yield None
    return _Topic(name=topic.name, topic_id=topic.topic_id, partitions=lines)


def _line(partition: int, offset: CommittedOffset, error: ErrorCode) -> _Partition:
    return _Partition(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=error,
    )


# --- the form before v8


def _as_group_topics(
    topics: Sequence[OffsetFetchRequest.OffsetFetchRequestTopic],
) -> list[OffsetFetchRequest.OffsetFetchRequestTopics]:
    return [
        OffsetFetchRequest.OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
        for topic in topics
    ]


def _as_one_group(group: _Group, asked: _Asked, version: int) -> OffsetFetchResponse:
    if group.error_code and version < _TOP_LEVEL_ERROR_SINCE:
        # Version 1 has no other place for it than each partition.
        group.topics = [
            _Topic(
                name=topic.name,
                partitions=[_line(index, _NO_OFFSET, ErrorCode(group.error_code)) for index in topic.partition_indexes],
            )
            for topic in asked.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
