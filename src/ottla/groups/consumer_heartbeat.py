"""ConsumerGroupHeartbeat: joining, staying, and leaving a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.common.result import Result
from ottla.groups import records
from ottla.groups.consumer_group import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    Assigned,
    ConsumerGroup,
    Member,
    MemberState,
    metadata_hash,
    subscribed_topics,
)
from ottla.groups.consumer_update import Update, cancel_timers, replace_static
from ottla.groups.migration import downgrade, may_downgrade, upgrade
from ottla.groups.reconcile import Owned
from ottla.groups.state import Client, GroupState
from ottla.groups.timers import MEMBER_SESSION
from ottla.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

# From this version on members make their own id.
MEMBER_ID_FROM_CLIENT_SINCE = 1


def consumer_heartbeat(
    state: GroupState, client: Client, request: ConsumerGroupHeartbeatRequest, out: Result
) -> ConsumerGroupHeartbeatResponse:
    _check_request(state, client, request)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return _leave(state, request, out)
    group = _find_group(state, request, out)
    member_id = request.member_id or state.new_id()
    if member_id not in group.members and len(group.members) >= state.config.consumer_members_max:
        limit = state.config.consumer_members_max
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has reached its maximum of {limit} members.")
    owned = _owned(request)
    before = _find_member(group, member_id, request, owned, out)
    member = Update(state, group, before, _updated(before, client, request), out, client.may_describe).run(owned)
    settings = state.consumer_settings(group.group_id)
    out.schedule((MEMBER_SESSION, group.group_id, member_id), settings.session_timeout_ms)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    if request.member_epoch == 0 or _is_full(request) or not _same_partitions(before.assigned, member.assigned):
        response.assignment = _assignment(member.assigned)
    return response


# --- the request -------------------------------------------------------------------------------------------------


def _check_request(state: GroupState, client: Client, request: ConsumerGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    problem = None
    if not request.group_id.strip():
        problem = "GroupId can't be empty."
    elif not request.member_id and (client.version >= MEMBER_ID_FROM_CLIENT_SINCE or epoch > 0 or epoch == LEAVE_EPOCH):
        problem = "MemberId can't be empty."
    elif request.instance_id == "":
        problem = "InstanceId can't be empty."
    elif request.rack_id == "":
        problem = "RackId can't be empty."
    elif epoch < LEAVE_STATIC_EPOCH:
        problem = f"MemberEpoch is invalid: {epoch}."
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        problem = "InstanceId can't be null."
    elif epoch == 0:
        problem = _problem_of_join(request)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in state.config.consumer_assignors:
        known = ", ".join(state.config.consumer_assignors)
        text = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, text)


def _problem_of_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A client that is unsure of what we know repeats everything, and wants to hear everything."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return [(TopicId(topic.topic_id), topic.partitions) for topic in request.topic_partitions]


def _assignment(assigned: Assigned) -> ConsumerGroupHeartbeatResponse.Assignment:
    schema = ConsumerGroupHeartbeatResponse.TopicPartitions
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            schema(topic_id=topic_id, partitions=sorted(partitions)) for topic_id, partitions in assigned.items()
        ]
    )


def _same_partitions(assigned: Assigned, other: Assigned) -> bool:
    return assigned is other or (
        assigned.keys() == other.keys() and all(assigned[topic].keys() == other[topic].keys() for topic in assigned)
    )


# --- group and member --------------------------------------------------------------------------------------------


def _find_group(state: GroupState, request: ConsumerGroupHeartbeatRequest, out: Result) -> ConsumerGroup:
    group_id = request.group_id
    found = state.groups.get(group_id)
    if isinstance(found, ConsumerGroup):
        return found
    if request.member_epoch != 0:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if found is None:
        return ConsumerGroup(group_id)
    if found.is_empty:
        # Its generation carries on as the epoch, so that no number of this group is ever used twice.
        out.records.append(records.group_tombstone(group_id))
        return ConsumerGroup(group_id, found.generation)
    return upgrade(state, found, out)


def _find_member(
    group: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest, owned: Owned, out: Result
) -> Member:
    is_joining = request.member_epoch == 0
    if request.instance_id is None:
        if is_joining and member_id not in group.members:
            return Member(member_id)
        member = group.member(member_id)
        _check_epoch(member, request.member_epoch, owned)
        return member
    existing = group.static_member(request.instance_id)
    if is_joining:
        if existing is None:
            return group.members.get(member_id) or Member(member_id)
        return _return_of_static(group, existing, member_id, request, out)
    if existing is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    check_instance(existing, member_id)
    _check_epoch(existing, request.member_epoch, owned)
    return existing


def _return_of_static(
    group: ConsumerGroup, existing: Member, member_id: str, request: ConsumerGroupHeartbeatRequest, out: Result
) -> Member:
    if existing.classic is None and existing.epoch != LEAVE_STATIC_EPOCH:
        if existing.member_id == member_id:
            return existing  # the same process starts over
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {request.instance_id} cannot join the group because the "
            f"instance id is owned by member {existing.member_id}.",
        )
    returning = replace(existing, member_id=member_id, epoch=0, previous_epoch=0)
    replace_static(group, existing, returning, out)
    return returning


def check_instance(member: Member, member_id: str) -> None:
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} was fenced by member {member.member_id}.",
        )


def _check_epoch(member: Member, epoch: int, owned: Owned) -> None:
    """Epoch 0 starts over. The epoch before is fine if the answer that raised it may have been lost."""
    if epoch in (0, member.epoch):
        return
    if epoch == member.previous_epoch and epoch < member.epoch and _is_within(owned, member.assigned):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member's epoch {epoch} is not the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned, assigned: Assigned) -> bool:
    if owned is None:
        return False
    return all(index in assigned.get(topic_id, {}) for topic_id, indexes in owned for index in indexes)


def _updated(before: Member, client: Client, request: ConsumerGroupHeartbeatRequest) -> Member:
    """What a heartbeat leaves out has not changed; what a join leaves out is not there, whoever had its place."""
    if _says_nothing(before, client, request):
        return before
    base = before
    if request.member_epoch == 0:
        base = replace(before, topics=(), regex="", rack_id=None, assignor=None)
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    after = replace(
        base,
        instance_id=base.instance_id if request.instance_id is None else request.instance_id,
        rack_id=base.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        topics=base.topics if names is None else tuple(sorted(dict.fromkeys(names))),
        regex=base.regex if regex is None else regex,
        rebalance_timeout_ms=(
            base.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=base.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )
    return before if after == before else after


def _says_nothing(before: Member, client: Client, request: ConsumerGroupHeartbeatRequest) -> bool:
    """Nearly all heartbeats: the member is still there, and that is all."""
    return (
        request.member_epoch > 0
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and request.rack_id is None
        and request.server_assignor is None
        and before.classic is None
        and before.client_id == client.client_id
        and before.client_host == client.host
        and request.instance_id in (None, before.instance_id)
    )


# --- leaving -----------------------------------------------------------------------------------------------------


def _leave(state: GroupState, request: ConsumerGroupHeartbeatRequest, out: Result) -> ConsumerGroupHeartbeatResponse:
    group = state.consumer(request.group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        fence(state, group, [group.member(request.member_id).member_id], out)
        return response
    member = group.static_member(request.instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    check_instance(member, request.member_id)
    if request.member_epoch == LEAVE_STATIC_EPOCH:
        # It means to come back: its partitions stay its own until its session ends.
        away = replace(member, epoch=LEAVE_STATIC_EPOCH, state=MemberState.STABLE, revoking={})
        out.records.append(records.current_assignment(group.group_id, away))
    else:
        fence(state, group, [member.member_id], out)
    return response


def fence(state: GroupState, group: ConsumerGroup, member_ids: Sequence[str], out: Result) -> None:
    """These members are out, by their own wish or not."""
    if not member_ids:
        return
    if may_downgrade(state, group, member_ids):
        downgrade(state, group, member_ids, None, out, must_rebalance=True)
        return
    gone = dict.fromkeys(member_ids)
    staying = [member for member in group.members.values() if member.member_id not in gone]
    for member_id in member_ids:
        out.records += records.remove_member(group.group_id, member_id)
        cancel_timers(group.group_id, member_id, out)
    wanted = {member.regex: None for member in staying}
    for regex in group.regexes:
        if regex not in wanted:
            out.records.append(records.regular_expression_tombstone(group.group_id, regex))
    topics = subscribed_topics(staying, group.regexes)
    out.records.append(records.group_epoch(group.group_id, group.epoch + 1, metadata_hash(topics, state.image)))


def expire_member(state: GroupState, group_id: str, member_id: str, out: Result) -> None:
    """A session, join or sync timer ran out."""
    group = state.consumer(group_id)
    if group is not None and member_id in group.members:
        fence(state, group, [member_id], out)


def expire_revocation(state: GroupState, group_id: str, member_id: str, epoch: int, out: Result) -> None:
    group = state.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None or member.epoch != epoch:
        return
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        fence(state, group, [member_id], out)
