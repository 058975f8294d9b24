"""Heartbeat v0-4. Renews a classic member's session and tells it when to rejoin."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.protocol.codec import Message
from ottla.protocol.messages import HeartbeatRequest

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> Message | Awaitable[Message]:
    return broker.groups.reply(broker.groups.shard(request.group_id).heartbeat(request))
