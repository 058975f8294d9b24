"""SyncGroup, Heartbeat and LeaveGroup for a classic group."""

from __future__ import annotations

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.result import Result, Ticket
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, State
from ottla.groups.classic_rebalance import (
    answer_syncs,
    rebalance_or_complete,
    remove_member,
    renew_session,
    session_key,
    settle_after_removal,
    sync_key,
)
from ottla.groups.state import GroupState
from ottla.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def sync_classic(
    state: GroupState, group: ClassicGroup, request: SyncGroupRequest, ticket: Ticket, out: Result
) -> None:
    _check_sync(group, request)
    member = group.members[request.member_id]
    if group.state is State.PREPARING:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.unsynced.pop(request.member_id, None)
    if not group.unsynced:
        out.cancel(sync_key(group))
    if group.state is State.STABLE:
        response = SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
        )
        out.answer(ticket, response)
        return
    if member.sync_ticket is not None:
        out.answer(member.sync_ticket, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_ticket = ticket
    if group.leader == request.member_id:
        _store_assignment(state, group, request, out)


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.state is State.DEAD:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    for asked, known in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)):
        if asked is not None and known is not None and asked != known:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _store_assignment(state: GroupState, group: ClassicGroup, request: SyncGroupRequest, out: Result) -> None:
    """The leader's word becomes the generation once it is in the log."""
    generation = group.generation
    out.records.append(
        records.group_metadata(
            group, {assignment.member_id: assignment.assignment for assignment in request.assignments}
        )
    )

    def stored(error: ErrorCode, out: Result) -> None:
        # Somebody may have joined meanwhile; then this assignment is history.
        if group.state is not State.COMPLETING or group.generation != generation:
            return
        if error is ErrorCode.NONE:
            group.move_to(State.STABLE, out.now_ms)
            answer_syncs(group, ErrorCode.NONE, out)
        else:
            answer_syncs(group, error, out)
            rebalance_or_complete(state, group, out)

    out.after_commit(stored)


def heartbeat_classic(group: ClassicGroup, request: HeartbeatRequest, out: Result) -> HeartbeatResponse:
    if group.state is State.DEAD:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    renew_session(group, group.members[request.member_id], out)
    if group.state is State.PREPARING:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave_unknown(request: LeaveGroupRequest) -> LeaveGroupResponse:
    """The group is not there, so none of them is."""
    schema = LeaveGroupResponse.MemberResponse
    return LeaveGroupResponse(
        members=[
            schema(member_id=m.member_id, group_instance_id=m.group_instance_id, error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            for m in request.members
        ]
    )


def leave_classic(
    state: GroupState, group: ClassicGroup, request: LeaveGroupRequest, out: Result
) -> LeaveGroupResponse:
    if group.state is State.DEAD:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    responses = []
    size = len(group.members)
    for identity in request.members:
        error = _leave(group, identity, out)
        responses.append(
            LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
            )
        )
    # An id that was given out and never used is no reason to rebalance, but the join phase may have waited for it.
    if len(group.members) < size or group.state is State.PREPARING:
        settle_after_removal(state, group, out)
    return LeaveGroupResponse(members=responses)


def _leave(group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity, out: Result) -> ErrorCode:
    member_id = identity.member_id
    if not member_id:
        # An administrator removes a static member by its instance id alone.
        member_id = group.static_ids.get(identity.group_instance_id or "", "")
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending:
        group.remove(member_id)
        out.cancel(session_key(group, member_id))
        return ErrorCode.NONE
    else:
        try:
            group.check_member(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
    remove_member(group, group.members[member_id], out)
    return ErrorCode.NONE
