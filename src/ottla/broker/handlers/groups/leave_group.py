"""LeaveGroup v0-5. One member (v0-2) or several, by member id or by instance id."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

_SEVERAL_SINCE = 3
# Members that leave in one change of the group's state, which nobody can interrupt.
_MEMBERS_AT_ONCE = 250


def handle(broker: Broker, context: RequestContext, request: LeaveGroupRequest) -> Steps[LeaveGroupResponse]:
    is_single = context.version < _SEVERAL_SINCE
    if is_single:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    members: list[LeaveGroupResponse.MemberResponse] = []
    for start in range(0, len(request.members) or 1, _MEMBERS_AT_ONCE):
        # As if the client had sent several requests.
        some = LeaveGroupRequest(group_id=request.group_id, members=request.members[start : start + _MEMBERS_AT_ONCE])
        response = yield from answered(broker.groups.shard(request.group_id).leave(some))
        members += response.members
        yield None
    return LeaveGroupResponse(error_code=members[0].error_code if is_single else ErrorCode.NONE, members=members)
