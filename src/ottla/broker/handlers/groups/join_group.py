"""JoinGroup v0-9. Parks until the join phase of the group ends."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import asked
from ottla.common.errors import ApiError
from ottla.common.steps import Steps
from ottla.groups.classic_group import refused_join
from ottla.protocol.messages import JoinGroupRequest, JoinGroupResponse

_PROTOCOL_NULLABLE_SINCE = 7


def handle(broker: Broker, context: RequestContext, request: JoinGroupRequest) -> Steps[JoinGroupResponse]:
    version, client = context.version, broker.groups.client(context)
    try:
        shard = broker.groups.shard(request.group_id)
        answer = yield from asked(lambda ticket: shard.join(client, request, ticket))
    except ApiError as error:
        answer = refused_join(error.code, request.member_id)
    return _for_version(answer, version)


def _for_version(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if response.protocol_name is None and version < _PROTOCOL_NULLABLE_SINCE:
        response.protocol_name = ""
    return response
