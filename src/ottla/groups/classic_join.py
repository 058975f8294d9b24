"""JoinGroup for a classic group: who may come in, under which id, and what their coming sets off.

A new dynamic member (v4+) is first told its id and asked to come again (KIP-394), so that a client that gives up
waiting does not leave a member behind each time it tries. A static member (KIP-345) that comes without an id takes the
place of the one that carried its instance id before.
"""

from __future__ import annotations

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.result import Result, Ticket
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, ClassicMember, Protocols, State, refused_join
from ottla.groups.classic_rebalance import (
    join_response,
    joined_members,
    prepare_rebalance,
    rebalance_or_complete,
    remove_member,
    renew_session,
    session_key,
    settle_after_removal,
)
from ottla.groups.state import Client, GroupState
from ottla.protocol.messages import JoinGroupRequest, JoinGroupResponse

# From this version on a dynamic member must know its id before it is let in, ...
MEMBER_ID_REQUIRED_SINCE = 4
# Of a string in any answer and record.
_MEMBER_ID_BYTES_MAX = 0x7FFF
# ... and from this one a returning static leader can be told not to assign again (KIP-814).
SKIP_ASSIGNMENT_SINCE = 9


class Join:
    """One JoinGroup request on its way through."""

    __slots__ = ("client", "protocols", "request", "ticket")

    def __init__(self, client: Client, request: JoinGroupRequest, ticket: Ticket) -> None:
        self.client = client
        self.request = request
        self.ticket = ticket
        self.protocols: Protocols = tuple(
            {protocol.name: (protocol.name, protocol.metadata) for protocol in request.protocols}.values()
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has one timeout for both."""
        asked = self.request.rebalance_timeout_ms
        return asked if asked >= 0 else self.request.session_timeout_ms

    def refuse(self, error: ErrorCode, out: Result, member_id: str = "") -> None:
        out.answer(self.ticket, refused_join(error, member_id))


def join_classic(state: GroupState, group: ClassicGroup, join: Join, out: Result) -> None:
    member_id = join.request.member_id
    if not _has_room(state, group, member_id):
        known = group.members.get(member_id)
        if known is not None:
            remove_member(group, known, out)
            settle_after_removal(state, group, out)
        join.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, out)
    elif group.state is State.DEAD:
        join.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, out, member_id)
    elif not group.supports(join.request.protocol_type, join.protocols):
        join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, out, member_id)
    elif not member_id:
        _join_without_id(state, group, join, out)
    elif member_id in group.pending and join.request.group_instance_id is None:
        _add_member(state, group, join, member_id, out)
    else:
        _rejoin(state, group, join, out)


def _has_room(state: GroupState, group: ClassicGroup, member_id: str) -> bool:
    if group.state in (State.EMPTY, State.DEAD):
        return len(group.pending) < state.config.pending_members_max
    known = group.members.get(member_id)
    if group.state is State.PREPARING:
        # Those who wait count, not those who are on the books: so when group.max.size is lowered, the last to rejoin
        # are the ones to go.
        is_waiting = known is not None and known.join_ticket is not None
        has_room = is_waiting or group.awaiting_join < state.config.members_max
    else:
        has_room = known is not None or len(group.members) < state.config.members_max
    return has_room and (bool(member_id) or len(group.pending) < state.config.pending_members_max)


def _join_without_id(state: GroupState, group: ClassicGroup, join: Join, out: Result) -> None:
    instance_id = join.request.group_instance_id
    new_id = _member_id(join.client.client_id if instance_id is None else instance_id, state.new_id())
    if instance_id is not None and instance_id in group.static_ids:
        _replace_static(state, group, join, new_id, out)
    elif instance_id is not None or join.client.version < MEMBER_ID_REQUIRED_SINCE:
        _add_member(state, group, join, new_id, out)
    else:
        group.pending[new_id] = None
        out.schedule(session_key(group, new_id), join.request.session_timeout_ms)
        join.refuse(ErrorCode.MEMBER_ID_REQUIRED, out, new_id)


def _member_id(name: str, unique: str) -> str:
    """As Kafka's, but one that fits where it must: into answers and records."""
    room = _MEMBER_ID_BYTES_MAX - len(unique) - 1
    return f"{name.encode()[:room].decode(errors='ignore')}-{unique}"


def _add_member(state: GroupState, group: ClassicGroup, join: Join, member_id: str, out: Result) -> None:
    member = ClassicMember(
        member_id,
        instance_id=join.request.group_instance_id,
        client_id=join.client.client_id,
        client_host=join.client.host,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        session_timeout_ms=join.request.session_timeout_ms,
        protocols=join.protocols,
    )
    member.is_new = True
    member.join_ticket = join.ticket
    if group.state is State.PREPARING and group.previous_state is State.EMPTY:
        group.joined_during_delay = True
    group.add(member, join.request.protocol_type)
    out.schedule(session_key(group, member_id), state.config.new_member_join_timeout_ms)
    rebalance_or_complete(state, group, out)


def _update_and_rebalance(
    state: GroupState, group: ClassicGroup, member: ClassicMember, join: Join, out: Result
) -> None:
    group.update(member, join.protocols, join.rebalance_timeout_ms, join.request.session_timeout_ms)
    group.await_join(member, join.ticket, out)
    rebalance_or_complete(state, group, out)


def _rejoin(state: GroupState, group: ClassicGroup, join: Join, out: Result) -> None:
    member_id = join.request.member_id
    try:
        group.check_member(member_id, join.request.group_instance_id)
    except ApiError as error:
        join.refuse(error.code, out, member_id)
        return
    member = group.members[member_id]
    is_same = member.protocols == join.protocols
    if group.state is State.COMPLETING and is_same:
        # It may have missed the answer; the generation has not moved.
        out.answer(join.ticket, join_response(group, member))
    elif group.state is State.STABLE and is_same and group.leader != member_id:
        # A follower with nothing new may fetch its assignment again. A leader that rejoins wants a rebalance: it has
        # seen topics change.
        out.answer(join.ticket, join_response(group, member))
    elif group.state is State.EMPTY:
        join.refuse(ErrorCode.UNKNOWN_MEMBER_ID, out, member_id)
    else:
        _update_and_rebalance(state, group, member, join, out)


def _replace_static(state: GroupState, group: ClassicGroup, join: Join, new_id: str, out: Result) -> None:
    instance_id = join.request.group_instance_id
    assert instance_id is not None
    old_leader = group.leader
    old_id = group.static_ids[instance_id]
    member = group.replace_static(instance_id, new_id, out)
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    out.cancel(session_key(group, old_id))
    group.update(member, join.protocols, join.rebalance_timeout_ms, join.request.session_timeout_ms)
    group.await_join(member, join.ticket, out)
    renew_session(group, member, out)
    if group.state is State.COMPLETING:
        # The leader may be assigning to the old id at this moment (KAFKA-9801).
        prepare_rebalance(state, group, out)
    elif group.state is State.STABLE and group.protocol == group.select_protocol():
        out.records.append(
            records.group_metadata(group, {member.member_id: member.assignment for member in group.members.values()})
        )

        def stored(error: ErrorCode, out: Result) -> None:
            if error is ErrorCode.NONE:
                _welcome_back(group, member, join, old_leader, out)
            elif group.members.get(new_id) is member:
                # The id is not in the log, so nobody may use it (KAFKA-10284).
                group.answer_join(member, refused_join(error), out)
                group.update(member, *before)
                group.rename(member, old_id)
                renew_session(group, member, out)

        out.after_commit(stored)
    else:
        rebalance_or_complete(state, group, out)


def _welcome_back(group: ClassicGroup, member: ClassicMember, join: Join, old_leader: str | None, out: Result) -> None:
    """A static member is back within its session and nothing needs to move: no rebalance."""
    response = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.member_id,
    )
    if join.client.version < SKIP_ASSIGNMENT_SINCE:
        # An old client that reads its own id as leader would assign again; the id it had before keeps it a follower.
        response.leader = old_leader or ""
    elif group.leader == member.member_id:
        response.skip_assignment = True
        response.members = joined_members(group)
    group.answer_join(member, response, out)
