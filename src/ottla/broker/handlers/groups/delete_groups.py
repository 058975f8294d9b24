"""DeleteGroups v0-2. Groups without members, with their offsets."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester, tell
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def handle(broker: Broker, context: RequestContext, request: DeleteGroupsRequest) -> Steps[DeleteGroupsResponse]:
    by = context.requester
    results = []
    for group_id in request.groups_names:
        code = yield from _delete(broker, by, group_id)
        results.append(DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=code))
        yield None
    return DeleteGroupsResponse(results=results)


def _delete(broker: Broker, by: Requester, group_id: str) -> Steps[ErrorCode]:
    try:
        out = broker.groups.shard(group_id).delete_group(group_id)
        reply: ErrorCode = yield from answered(out)
    except ApiError as error:
        # A group that we would be the coordinator of, if there were any.
        missing = error.code is ErrorCode.NOT_COORDINATOR and not broker.groups.runtime.has_topic
        return ErrorCode.GROUP_ID_NOT_FOUND if missing else error.code
    if reply is ErrorCode.NONE:
        tell("group deleted", by, group=group_id)
    return reply
