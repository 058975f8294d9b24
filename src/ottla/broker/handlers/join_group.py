"""JoinGroup v0-9. Parks until the join phase of the group ends."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError
from ottla.groups.classic_group import refused_join
from ottla.protocol.messages import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_PROTOCOL_NULLABLE_SINCE = 7


def handle(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    groups = broker.groups
    version = context.version
    try:
        shard = groups.shard(request.group_id)
    except ApiError as error:
        return _for_version(refused_join(error.code, request.member_id), version)
    client = groups.client(context)
    answer = groups.ask(lambda ticket: shard.join(client, request, ticket))
    return _for_version(answer, version) if isinstance(answer, JoinGroupResponse) else _later(answer, version)


async def _later(answer: Awaitable[JoinGroupResponse], version: int) -> JoinGroupResponse:
    return _for_version(await answer, version)


def _for_version(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if response.protocol_name is None and version < _PROTOCOL_NULLABLE_SINCE:
        response.protocol_name = ""
    return response
