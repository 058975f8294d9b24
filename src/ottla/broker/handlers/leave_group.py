"""LeaveGroup v0-5. One member (v0-2) or several, by member id or by instance id."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.protocol.codec import Message
from ottla.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_SEVERAL_SINCE = 3


def handle(broker: Broker, context: RequestContext, request: LeaveGroupRequest) -> Message | Awaitable[Message]:
    is_single = context.version < _SEVERAL_SINCE
    if is_single:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    out = broker.groups.shard(request.group_id).leave(request)

    def make(response: LeaveGroupResponse) -> LeaveGroupResponse:
        if is_single:
            response.error_code = response.members[0].error_code
        return response

    return broker.groups.reply(out, make)
