"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, and the expiry of offsets nobody needs.

Topics come resolved: name and id, whichever of the two the client sent. Unknown topics never get this far; they
are the broker's to refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.result import Result
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, State
from ottla.groups.classic_rebalance import renew_session
from ottla.groups.consumer_group import ConsumerGroup, Member, check_commit_partition
from ottla.groups.offsets import CommittedOffset
from ottla.groups.state import Group, GroupState
from ottla.protocol.messages import OffsetCommitRequest, TxnOffsetCommitRequest

DEFAULT_RETENTION = -1
# The latest time that a record can hold: a client may ask for that of a thousand million years.
_TIME_MAX_MS = 2**63 - 1


class CommitTopic(NamedTuple):
    name: str
    # Zero when the client spoke of the topic by name; then the offset is the name's, whatever topic carries it.
    topic_id: TopicId
    partitions: Sequence[
        OffsetCommitRequest.OffsetCommitRequestPartition | TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    ]


class FetchTopic(NamedTuple):
    name: str
    topic_id: TopicId
    partitions: Sequence[int]


# --- commit ------------------------------------------------------------------------------------------------------


def commit_offsets(
    state: GroupState, request: OffsetCommitRequest, version: int, topics: Sequence[CommitTopic], out: Result
) -> list[list[ErrorCode]]:
    """An error for each partition of each topic, in order. Raises what concerns the whole request."""
    group = state.groups.get(request.group_id)
    member: Member | None = None
    epoch = request.generation_id_or_member_epoch
    if group is None:
        if epoch >= 0:
            # From version 9 on the answer suits both protocols.
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION)
    elif isinstance(group, ClassicGroup):
        group.check_commit(request.member_id, request.group_instance_id, epoch, transactional=False)
        committer = group.members.get(request.member_id)
        # In a classic group a commit is as good as a heartbeat.
        if committer is not None and group.state in (State.STABLE, State.PREPARING):
            renew_session(group, committer, out)
    else:
        member = group.check_commit(
            request.member_id, request.group_instance_id, epoch, transactional=False, version=version
        )
    if member is not None:
        _check_partitions(state, member, topics, epoch)
    asked_ms = request.retention_time_ms
    expire_ms = -1 if asked_ms == DEFAULT_RETENTION else min(out.now_ms + asked_ms, _TIME_MAX_MS)
    return _write(state, request.group_id, topics, expire_ms, out)


def _check_partitions(state: GroupState, member: Member, topics: Sequence[CommitTopic], epoch: int) -> None:
    for topic in topics:
        known = state.image.topics.get(topic.name)
        topic_id = topic.topic_id if known is None else known.id
        for partition in topic.partitions:
            check_commit_partition(member, topic_id, partition.partition_index, epoch)


def _write(
    state: GroupState, group_id: str, topics: Sequence[CommitTopic], expire_ms: int, out: Result
) -> list[list[ErrorCode]]:
    limit = state.config.offset_metadata_bytes_max
    now_ms = out.now_ms
    errors: list[list[ErrorCode]] = []
    for name, topic_id, partitions in topics:
        row: list[ErrorCode] = []
        for partition in partitions:
            metadata = partition.committed_metadata or ""
            if len(metadata) > limit:
                row.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            committed = CommittedOffset(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, expire_ms, topic_id
            )
            out.records.append(records.offset_commit(group_id, name, partition.partition_index, committed))
            row.append(ErrorCode.NONE)
        errors.append(row)
    return errors


def commit_transactional(
    state: GroupState, request: TxnOffsetCommitRequest, topics: Sequence[CommitTopic], out: Result
) -> list[list[ErrorCode]]:
    """As a commit, but the offsets count only when the producer's transaction is committed."""
    group = state.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    elif isinstance(group, ClassicGroup):
        group.check_commit(request.member_id, request.group_instance_id, request.generation_id, transactional=True)
    else:
        try:
            member = group.check_commit(
                request.member_id, request.group_instance_id, request.generation_id, transactional=True, version=0
            )
            if member is not None:
                _check_partitions(state, member, topics, request.generation_id)
        except ApiError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION) from None  # the only word producers know for it
            raise
    out.producer = (request.producer_id, request.producer_epoch)
    return _write(state, request.group_id, topics, -1, out)


# --- fetch -------------------------------------------------------------------------------------------------------


def check_fetch(state: GroupState, group_id: str, member_id: str | None, epoch: int) -> None:
    """A group that does not exist has no offsets, which is no error."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        group.check_fetch(member_id, epoch)


def fetch_offset(
    state: GroupState, group_id: str, topic: FetchTopic, partition: int, *, require_stable: bool
) -> CommittedOffset | ErrorCode | None:
    if require_stable and state.offsets.is_pending(group_id, topic.name, partition):
        return ErrorCode.UNSTABLE_OFFSET_COMMIT
    found = state.offsets.get(group_id, topic.name, partition)
    if found is not None and found.record_offset < state.forgetting.get(topic.name, 0):
        return None  # of a deleted topic; the disk has not taken the tombstone yet
    if found is not None and ZERO_TOPIC_ID not in (found.topic_id, topic.topic_id) and found.topic_id != topic.topic_id:
        return None  # of an earlier topic of this name
    return found


# --- delete ------------------------------------------------------------------------------------------------------


def delete_offsets(
    state: GroupState, group_id: str, topics: Sequence[tuple[str, Sequence[int]]], out: Result
) -> list[list[ErrorCode]]:
    """An error for each partition of each topic. Without the consumer protocol we cannot tell which topics a group
    reads, so it must have no members."""
    group = state.group(group_id)
    if isinstance(group, ClassicGroup) and not group.is_empty and not group.uses_consumer_protocol:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    return [[_delete_offset(state, group, topic, index, out) for index in indexes] for topic, indexes in topics]


def _delete_offset(state: GroupState, group: Group, topic: str, partition: int, out: Result) -> ErrorCode:
    if group.is_subscribed_to(topic):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    group_id = group.group_id
    if state.offsets.get(group_id, topic, partition) is not None or state.offsets.is_pending(
        group_id, topic, partition
    ):
        out.records.append(records.offset_tombstone(group_id, topic, partition))
    return ErrorCode.NONE


def delete_all_offsets(state: GroupState, group_id: str, out: Result) -> None:
    seen: dict[tuple[str, int], None] = {}
    for topic, partitions in state.offsets.of_group(group_id).items():
        seen.update(dict.fromkeys((topic, partition) for partition in partitions))
    seen.update(dict.fromkeys(state.offsets.pending_of_group(group_id)))
    out.records += [records.offset_tombstone(group_id, topic, partition) for topic, partition in seen]


def forget_topic(state: GroupState, topic: str, before: int, out: Result) -> None:
    """The topic is gone, and with it the offsets of all groups for it, also those that an open transaction may still
    commit. What stands at `before` or later in the log is of a topic that came after it."""
    found: dict[tuple[str, int], None] = {}
    for group_id, topics in state.offsets.by_group.items():
        for partition, committed in topics.get(topic, {}).items():
            if committed.record_offset < before:
                found[group_id, partition] = None
    for pending in state.offsets.pending.values():
        for (group_id, name, partition), committed in pending.items():
            if name == topic and committed.record_offset < before:
                found[group_id, partition] = None
    out.records += [records.offset_tombstone(group_id, topic, partition) for group_id, partition in found]


# --- expiry ------------------------------------------------------------------------------------------------------


def expire_offsets(state: GroupState, group_id: str, now_ms: int, out: Result) -> bool:
    """Tombstones for what has outlived offsets.retention.minutes. True if the group has no offsets left then."""
    topics = state.offsets.by_group.get(group_id)
    if topics is None:
        return not state.offsets.has_open_transactions(group_id)
    group = state.groups.get(group_id)
    if group is None or not _may_expire(group):
        return False
    all_gone = True
    for topic, partitions in topics.items():
        if group.is_subscribed_to(topic):
            all_gone = False
            continue
        for partition, committed in partitions.items():
            if _is_expired(state, group, committed, now_ms) and not state.offsets.is_pending(
                group_id, topic, partition
            ):
                out.records.append(records.offset_tombstone(group_id, topic, partition))
            else:
                all_gone = False
    return all_gone and not state.offsets.has_open_transactions(group_id)


def _may_expire(group: Group) -> bool:
    """Not in the middle of a rebalance: a topic may seem unread only because its reader is on its way (KAFKA-13636)."""
    if isinstance(group, ConsumerGroup) or group.protocol_type is None or group.is_empty:
        return True
    return group.uses_consumer_protocol and group.subscribed_topics is not None and group.state is State.STABLE


def _is_expired(state: GroupState, group: Group, committed: CommittedOffset, now_ms: int) -> bool:
    if committed.expire_timestamp_ms >= 0:
        return now_ms >= committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms
    if isinstance(group, ClassicGroup) and group.protocol_type is not None and group.is_empty:
        # The clock starts when the last member has gone, not at its last commit (KIP-211).
        since_ms = since_ms if group.state_timestamp_ms is None else group.state_timestamp_ms
    return now_ms - since_ms >= state.config.offsets_retention_ms
