"""Heartbeat v0-4. Renews a classic member's session and tells it when to rejoin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.protocol.messages import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    response: HeartbeatResponse = broker.groups.shard(request.group_id).heartbeat(request).reply
    return response
