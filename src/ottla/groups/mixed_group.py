"""Members of the classic protocol in a consumer group: their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

A join is a heartbeat in other words: it brings the subscription and what the member owns, and moves it a step. A sync
hands it what it has been assigned. A heartbeat tells it to join again when there is a further step. Each phase has a
timer, because such a member cannot be told anything between its requests.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.result import Result, Ticket, TimerKey
from ottla.groups import consumer_protocol
from ottla.groups.classic_join import MEMBER_ID_REQUIRED_SINCE, Join
from ottla.groups.config import MigrationPolicy
from ottla.groups.consumer_group import ClassicMetadata, ConsumerGroup, Member, MemberState
from ottla.groups.consumer_heartbeat import check_instance, fence
from ottla.groups.consumer_protocol import PROTOCOL_TYPE, Subscription
from ottla.groups.consumer_update import Update, replace_static
from ottla.groups.migration import assignment_bytes, downgrade, may_downgrade, owned_ids
from ottla.groups.state import GroupState
from ottla.groups.timers import MEMBER_JOIN, MEMBER_SESSION, MEMBER_SYNC
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def _key(kind: str, group: ConsumerGroup, member_id: str) -> TimerKey:
    return (kind, group.group_id, member_id)


# --- join --------------------------------------------------------------------------------------------------------


def join_consumer(state: GroupState, group: ConsumerGroup, join: Join, out: Result) -> None:
    request = join.request
    member_id = request.member_id or state.new_id()
    subscription = _check_join(state, group, join, member_id)
    if not request.member_id and request.group_instance_id is None and join.client.version >= MEMBER_ID_REQUIRED_SINCE:
        join.refuse(ErrorCode.MEMBER_ID_REQUIRED, out, member_id)
        return
    if (
        request.group_instance_id is None
        and member_id not in group.members
        and any(partitions for _, partitions in subscription.owned)
    ):
        # We do not keep the ids we give out, but one that is new owns nothing. This member was fenced and does not know
        # it; it must let go of what others may have by now.
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    replaced = group.static_member(request.group_instance_id)
    before = _find_member(group, join, member_id, replaced, out)
    after = replace(
        before,
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        client_id=join.client.client_id,
        client_host=join.client.host,
        topics=tuple(sorted(dict.fromkeys(subscription.topics))),
        regex="",
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        classic=ClassicMetadata(request.session_timeout_ms, join.protocols),
    )
    update = Update(state, group, before, after, out, join.client.may_describe)
    if replaced is not None and may_downgrade(state, group, [replaced.member_id], joining=1):
        member = _downgrade(state, group, replaced, update, out)
        _answer_join(group, join, member, out, is_downgrade=True)
    else:
        _answer_join(group, join, update.run(owned_ids(subscription.owned, state.image)), out, is_downgrade=False)


def _check_join(state: GroupState, group: ConsumerGroup, join: Join, member_id: str) -> Subscription:
    config = state.config
    if config.migration_policy is MigrationPolicy.DISABLED:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if member_id not in group.members and len(group.members) >= config.consumer_members_max:
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports_classic(join.request.protocol_type, [name for name, _ in join.protocols]):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return consumer_protocol.read_subscription(join.protocols[0][1])
    except MalformedMessage:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None


def _find_member(group: ConsumerGroup, join: Join, member_id: str, replaced: Member | None, out: Result) -> Member:
    instance_id = join.request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    if join.request.member_id:
        if replaced is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        check_instance(replaced, member_id)
        return replaced
    if replaced is None:
        return Member(member_id)
    returning = replace(replaced, member_id=member_id, epoch=0, previous_epoch=0)
    replace_static(group, replaced, returning, out)
    return returning


def _downgrade(state: GroupState, group: ConsumerGroup, replaced: Member, update: Update, out: Result) -> Member:
    """The last member of the consumer protocol has come back speaking the classic one."""
    is_bump = update.write_member()
    # Without a rebalance everybody would stay with what the record says, so that has to be what everybody has.
    is_settled = all(
        member.member_id == replaced.member_id or member.is_reconciled_to(group.epoch)
        for member in group.members.values()
    )
    target = group.target_of(replaced)
    assigned = {topic_id: dict.fromkeys(partitions, group.epoch) for topic_id, partitions in target.items()}
    member = replace(update.member, epoch=group.epoch, assigned=assigned if is_settled else update.member.assigned)
    downgrade(state, group, [replaced.member_id], member, out, must_rebalance=is_bump or not is_settled)
    return member


def _answer_join(group: ConsumerGroup, join: Join, member: Member, out: Result, *, is_downgrade: bool) -> None:
    assert member.classic is not None
    response = JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
    )

    if not is_downgrade:
        out.cancel(_key(MEMBER_JOIN, group, member.member_id))
        out.schedule(_key(MEMBER_SESSION, group, member.member_id), join.request.session_timeout_ms)
        out.schedule(_key(MEMBER_SYNC, group, member.member_id), join.rebalance_timeout_ms)

    def stored(error: ErrorCode, out: Result) -> None:
        if error is ErrorCode.NONE:
            out.answer(join.ticket, response)
        else:
            join.refuse(error, out)

    out.after_commit(stored)


# --- sync and heartbeat ------------------------------------------------------------------------------------------


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
    if instance_id is None:
        member = group.member(member_id)
    else:
        static = group.static_member(instance_id)
        if static is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        check_instance(static, member_id)
        member = static
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return member


def sync_consumer(
    state: GroupState, group: ConsumerGroup, request: SyncGroupRequest, ticket: Ticket, out: Result
) -> None:
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    name = member.classic.protocols[0][0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # One that is giving up partitions has joined already and must first be told which.
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        out.schedule(_key(MEMBER_JOIN, group, member.member_id), member.rebalance_timeout_ms, keep=True)
        out.answer(ticket, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return
    out.cancel(_key(MEMBER_SYNC, group, member.member_id))
    out.schedule(_key(MEMBER_SESSION, group, member.member_id), member.classic.session_timeout_ms)
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_bytes(member.assigned, member.classic, state.image),
    )
    out.answer(ticket, response)


def heartbeat_consumer(group: ConsumerGroup, request: HeartbeatRequest, out: Result) -> HeartbeatResponse:
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    out.schedule(_key(MEMBER_SESSION, group, member.member_id), member.classic.session_timeout_ms)
    is_behind = member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS
    if is_behind or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for_release(member)):
        out.schedule(_key(MEMBER_JOIN, group, member.member_id), member.rebalance_timeout_ms, keep=True)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


# --- leave -------------------------------------------------------------------------------------------------------


def leave_consumer(
    state: GroupState, group: ConsumerGroup, request: LeaveGroupRequest, out: Result
) -> LeaveGroupResponse:
    leaving: dict[str, None] = {}
    responses = []
    for identity in request.members:
        error = ErrorCode.NONE
        try:
            leaving[_leaving_member(group, identity).member_id] = None
        except ApiError as refused:
            error = refused.code
        responses.append(
            LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
            )
        )
    fence(state, group, list(leaving), out)
    return LeaveGroupResponse(members=responses)


def _leaving_member(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if identity.member_id:
        check_instance(member, identity.member_id)
    return member
