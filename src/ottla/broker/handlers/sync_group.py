"""SyncGroup v0-5. Parks a follower until the leader's assignment is in the log."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from ottla.broker.context import RequestContext
from ottla.protocol.messages import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(
    broker: Broker, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    shard = broker.groups.shard(request.group_id)
    answer: Any = broker.groups.park(lambda ticket: shard.sync(request, ticket))
    return answer  # type: ignore[no-any-return]
