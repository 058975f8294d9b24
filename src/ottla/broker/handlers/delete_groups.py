"""DeleteGroups v0-2. Groups without members, with their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.change_log import tell
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


async def handle(broker: Broker, context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=one, error_code=await _delete(broker, context, one))
            for one in request.groups_names
        ]
    )


async def _delete(broker: Broker, context: RequestContext, group_id: str) -> ErrorCode:
    try:
        out = broker.groups.shard(group_id).delete_group(group_id)
        await broker.groups.settled(out)
    except ApiError as error:
        # A group that we would be the coordinator of, if there were any.
        missing = error.code is ErrorCode.NOT_COORDINATOR
        return ErrorCode.GROUP_ID_NOT_FOUND if missing else error.code
    reply: ErrorCode = out.reply
    if reply is ErrorCode.NONE:
        tell("group deleted", context.requester, group=group_id)
    return reply
