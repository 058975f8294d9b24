"""LeaveGroup v0-5. One member (v0-2) or several, by member id or by instance id."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from ottla.broker.context import RequestContext
from ottla.common.steps import Steps
from ottla.protocol.codec import Message
from ottla.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_SEVERAL_SINCE = 3
# Members that leave in one change of the group's state, which nobody can interrupt.
_MEMBERS_AT_ONCE = 250


def handle(
    broker: Broker, context: RequestContext, request: LeaveGroupRequest
) -> Message | Awaitable[Message] | Steps[Message]:
    is_single = context.version < _SEVERAL_SINCE
    if is_single:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    elif len(request.members) > _MEMBERS_AT_ONCE:
        return _leave_in_pieces(broker, request)
    out = broker.groups.shard(request.group_id).leave(request)

    def make(response: LeaveGroupResponse) -> LeaveGroupResponse:
        if is_single:
            response.error_code = response.members[0].error_code
        return response

    return broker.groups.reply(out, make)


def _leave_in_pieces(broker: Broker, request: LeaveGroupRequest) -> Steps[Message]:
    """As if the client had sent several requests."""
    members: list[LeaveGroupResponse.MemberResponse] = []
    for start in range(0, len(request.members), _MEMBERS_AT_ONCE):
        piece = LeaveGroupRequest(group_id=request.group_id, members=request.members[start : start + _MEMBERS_AT_ONCE])
        response: Any = broker.groups.reply(broker.groups.shard(request.group_id).leave(piece))
        if not isinstance(response, Message):
            response = yield response
        members += response.members
        yield None
    return LeaveGroupResponse(members=members)
