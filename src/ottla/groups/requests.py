"""Requests and timers of members, each given to the kind of group that it is for."""

from __future__ import annotations

from typing import Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.result import Result, Ticket, TimerKey
from ottla.groups import classic_rebalance, consumer_heartbeat
from ottla.groups.classic_group import ClassicGroup, State, refused_join
from ottla.groups.classic_join import Join, join_classic
from ottla.groups.classic_sync import heartbeat_classic, leave_classic, leave_unknown, sync_classic
from ottla.groups.consumer_group import ConsumerGroup, MemberState
from ottla.groups.migration import group_tombstones
from ottla.groups.mixed_group import heartbeat_consumer, join_consumer, leave_consumer, sync_consumer
from ottla.groups.records import empty_group_metadata
from ottla.groups.state import GroupState
from ottla.groups.timers import (
    CLASSIC_JOIN,
    CLASSIC_SESSION,
    CLASSIC_SYNC,
    MEMBER_JOIN,
    MEMBER_REBALANCE,
    MEMBER_SESSION,
    MEMBER_SYNC,
)
from ottla.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def join_group(state: GroupState, join: Join, out: Result) -> None:
    request, config = join.request, state.config
    if not request.group_id:
        join.refuse(ErrorCode.INVALID_GROUP_ID, out, request.member_id)
    elif not config.session_timeout_ms_min <= request.session_timeout_ms <= config.session_timeout_ms_max:
        join.refuse(ErrorCode.INVALID_SESSION_TIMEOUT, out, request.member_id)
    else:
        _join(state, join, out)


def _join(state: GroupState, join: Join, out: Result) -> None:
    group = state.groups.get(join.request.group_id)
    if isinstance(group, ClassicGroup):
        join_classic(state, group, join, out)
    elif group is None and join.request.member_id:
        join.refuse(ErrorCode.UNKNOWN_MEMBER_ID, out, join.request.member_id)
    elif group is None or group.is_empty:
        _make_classic(state, join, group, out)
    else:
        try:
            join_consumer(state, group, join, out)
        except ApiError as error:
            out.take_back()
            join.refuse(error.code, out)


def _make_classic(state: GroupState, join: Join, empty: ConsumerGroup | None, out: Result) -> None:
    """A group begins with a record that it exists; the join goes on when that is in the log."""
    if empty is not None:
        out.records += group_tombstones(empty, [])
    generation = 0 if empty is None else empty.epoch
    out.records.append(empty_group_metadata(join.request.group_id, generation))

    def made(error: ErrorCode, out: Result) -> None:
        if error is ErrorCode.NONE:
            _join(state, join, out)
        else:
            join.refuse(error, out)

    out.after_commit(made)


def sync_group(state: GroupState, request: SyncGroupRequest, ticket: Ticket, out: Result) -> None:
    group = state.groups.get(request.group_id)
    try:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        if group is None or group.is_empty:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ClassicGroup):
            sync_classic(state, group, request, ticket, out)
        else:
            sync_consumer(state, group, request, ticket, out)
    except ApiError as error:
        out.answer(ticket, SyncGroupResponse(error_code=error.code))


def heartbeat(state: GroupState, request: HeartbeatRequest, out: Result) -> HeartbeatResponse:
    group = state.groups.get(request.group_id)
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    if group is None or group.is_empty:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ClassicGroup):
        return heartbeat_classic(group, request, out)
    return heartbeat_consumer(group, request, out)


def leave_group(state: GroupState, request: LeaveGroupRequest, out: Result) -> LeaveGroupResponse:
    group = state.groups.get(request.group_id)
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    if group is None:
        return leave_unknown(request)
    if isinstance(group, ClassicGroup):
        return leave_classic(state, group, request, out)
    return leave_consumer(state, group, request, out)


def expire_timer(state: GroupState, key: TimerKey, payload: Any, out: Result) -> None:
    kind, group_id, member_id = key
    classic = state.classic(group_id)
    if classic is not None:
        if kind == CLASSIC_SESSION:
            classic_rebalance.expire_session(state, classic, member_id, out)
        elif kind == CLASSIC_JOIN:
            classic_rebalance.expire_join(state, classic, payload, out)
        elif kind == CLASSIC_SYNC:
            classic_rebalance.expire_sync(state, classic, payload, out)
    elif kind == MEMBER_REBALANCE:
        consumer_heartbeat.expire_revocation(state, group_id, member_id, payload, out)
    elif kind in (MEMBER_SESSION, MEMBER_JOIN, MEMBER_SYNC):
        consumer_heartbeat.expire_member(state, group_id, member_id, out)


def expect_members(state: GroupState, out: Result) -> None:
    """The log has been read: from now on members are expected to be heard of."""
    for group in list(state.groups.values()):
        if isinstance(group, ClassicGroup):
            _expect_classic(state, group, out)
        else:
            _expect_consumers(state, group, out)


def _expect_classic(state: GroupState, group: ClassicGroup, out: Result) -> None:
    for member in group.members.values():
        classic_rebalance.renew_session(group, member, out)
    is_over = len(group.members) > state.config.members_max
    if is_over or (group.members and group.leader is None):
        # group.max.size was lowered, and a rebalance lets the surplus go in an orderly way; or a downgrade has not
        # got to its rebalance.
        classic_rebalance.prepare_rebalance(state, group, out)


def _expect_consumers(state: GroupState, group: ConsumerGroup, out: Result) -> None:
    for member in group.members.values():
        timeout_ms = state.consumer_settings(group.group_id).session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        out.schedule((MEMBER_SESSION, group.group_id, member.member_id), timeout_ms)
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            key = (MEMBER_REBALANCE, group.group_id, member.member_id)
            out.schedule(key, member.rebalance_timeout_ms, member.epoch)


def send_elsewhere(state: GroupState, out: Result) -> None:
    """The partition is not ours any more: those who wait are told so."""
    elsewhere = ErrorCode.NOT_COORDINATOR
    for group in state.groups.values():
        if isinstance(group, ClassicGroup):
            for member in group.members.values():
                group.answer_join(member, refused_join(elsewhere, member.member_id), out)
                group.answer_sync(member, SyncGroupResponse(error_code=elsewhere), out)
            group.move_to(State.DEAD, out.now_ms)
