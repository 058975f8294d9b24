"""The join phase of a classic group: when it starts, when it ends, and what ends it by time.

`prepare_rebalance` opens it, `complete_join` closes it. In between, members come in through `classic_join`. The first
rebalance of an empty group waits for a fixed delay, longer if members keep arriving (KIP-134); every later one waits
until all have rejoined or the longest rebalance timeout has passed.
"""

from __future__ import annotations

from ottla.common.errors import ErrorCode
from ottla.common.result import Result, TimerKey
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, ClassicMember, State, refused_join
from ottla.groups.state import GroupState
from ottla.groups.timers import CLASSIC_JOIN, CLASSIC_SESSION, CLASSIC_SYNC
from ottla.protocol.messages import JoinGroupResponse, SyncGroupResponse


def session_key(group: ClassicGroup, member_id: str) -> TimerKey:
    return (CLASSIC_SESSION, group.group_id, member_id)


def join_key(group: ClassicGroup) -> TimerKey:
    return (CLASSIC_JOIN, group.group_id, "")


def sync_key(group: ClassicGroup) -> TimerKey:
    return (CLASSIC_SYNC, group.group_id, "")


def renew_session(group: ClassicGroup, member: ClassicMember, out: Result) -> None:
    out.schedule(session_key(group, member.member_id), member.session_timeout_ms)


# --- opening -----------------------------------------------------------------------------------------------------


def rebalance_or_complete(state: GroupState, group: ClassicGroup, out: Result) -> None:
    """A member came, went or changed."""
    if group.can_rebalance:
        prepare_rebalance(state, group, out)
    else:
        complete_join_if_ready(state, group, out)


def prepare_rebalance(state: GroupState, group: ClassicGroup, out: Result) -> None:
    if group.state is State.COMPLETING:
        answer_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, out)
    group.unsynced.clear()
    out.cancel(sync_key(group))
    is_first = group.is_empty
    group.move_to(State.PREPARING, out.now_ms)
    if is_first:
        delay_ms = state.config.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.joined_during_delay = False
        out.schedule(join_key(group), delay_ms, (delay_ms, remaining_ms))
    elif group.has_all_joined:
        complete_join(state, group, out)
    else:
        out.schedule(join_key(group), group.rebalance_timeout_ms)


# --- closing -----------------------------------------------------------------------------------------------------


def complete_join_if_ready(state: GroupState, group: ClassicGroup, out: Result) -> None:
    # The first rebalance is closed by its delay alone.
    if group.state is State.PREPARING and group.previous_state is not State.EMPTY and group.has_all_joined:
        complete_join(state, group, out)


def complete_join(state: GroupState, group: ClassicGroup, out: Result) -> None:
    """Whoever has not rejoined is out, unless it is static: those stay until their session ends (KIP-345)."""
    out.cancel(join_key(group))
    for member in list(group.members.values()):
        if member.join_ticket is None and member.instance_id is None:
            group.remove(member.member_id)
            out.cancel(session_key(group, member.member_id))
    if group.members and not group.elect_joined_leader():
        # Only static members that have not come back. Their sessions will decide.
        out.schedule(join_key(group), group.rebalance_timeout_ms)
        return
    group.start_generation(out.now_ms)
    if group.is_empty:
        # If this append fails, the last stored generation is what a restart finds, and its members time out.
        out.records.append(records.group_metadata(group, {}))
        return
    for member in group.members.values():
        group.answer_join(member, join_response(group, member), out)
        renew_session(group, member, out)
        member.is_new = False
        group.unsynced[member.member_id] = None
    out.schedule(sync_key(group), group.rebalance_timeout_ms, group.generation)


def join_response(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The current generation, with everybody's metadata if the member is the one to assign."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.member_id,
        members=joined_members(group) if group.leader == member.member_id else (),
    )


def joined_members(group: ClassicGroup) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    return [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(group.protocol)
        )
        for member in group.members.values()
    ]


def answer_syncs(group: ClassicGroup, error: ErrorCode, out: Result) -> None:
    ok = error is ErrorCode.NONE
    for member in group.members.values():
        response = SyncGroupResponse(
            error_code=error,
            protocol_type=group.protocol_type if ok else None,
            protocol_name=group.protocol if ok else None,
            assignment=member.assignment if ok else b"",
        )
        if group.answer_sync(member, response, out):
            # While it waited its session could not expire; from now on it can.
            renew_session(group, member, out)


# --- time --------------------------------------------------------------------------------------------------------


def expire_join(state: GroupState, group: ClassicGroup, payload: tuple[int, int] | None, out: Result) -> None:
    if group.state is not State.PREPARING:
        return
    if payload is not None and group.joined_during_delay:
        delay_ms, remaining_ms = payload
        if remaining_ms > 0:
            group.joined_during_delay = False
            next_ms = min(state.config.initial_rebalance_delay_ms, remaining_ms)
            out.schedule(join_key(group), next_ms, (next_ms, max(remaining_ms - delay_ms, 0)))
            return
    complete_join(state, group, out)


def expire_sync(state: GroupState, group: ClassicGroup, generation: int, out: Result) -> None:
    """Members that joined and then never asked for their assignment would hold the group up for ever (KAFKA-12890)."""
    if generation != group.generation or group.state not in (State.COMPLETING, State.STABLE) or not group.unsynced:
        return
    for member_id in list(group.unsynced):
        group.remove(member_id)
        out.cancel(session_key(group, member_id))
    prepare_rebalance(state, group, out)


def expire_session(state: GroupState, group: ClassicGroup, member_id: str, out: Result) -> None:
    if group.state is State.DEAD:
        return
    if member_id in group.pending:
        group.remove(member_id)
        complete_join_if_ready(state, group, out)
        return
    member = group.members.get(member_id)
    if member is not None and not member.is_kept_alive:
        remove_member(group, member, out)
        settle_after_removal(state, group, out)


def remove_member(group: ClassicGroup, member: ClassicMember, out: Result) -> None:
    """A held join is answered so that a client that is still there tries again with a clean slate."""
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    group.answer_join(member, refused_join(unknown), out)
    group.answer_sync(member, SyncGroupResponse(error_code=unknown), out)
    group.remove(member.member_id)
    out.cancel(session_key(group, member.member_id))


def settle_after_removal(state: GroupState, group: ClassicGroup, out: Result) -> None:
    if group.state in (State.STABLE, State.COMPLETING):
        prepare_rebalance(state, group, out)
    elif group.state is State.PREPARING:
        complete_join_if_ready(state, group, out)
