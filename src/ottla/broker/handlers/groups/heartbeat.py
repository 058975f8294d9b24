"""Heartbeat v0-4. Renews a classic member's session and tells it when to rejoin."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.steps import Steps
from ottla.protocol.codec import Message
from ottla.protocol.messages import HeartbeatRequest


def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> Steps[Message]:
    return answered(broker.groups.shard(request.group_id).heartbeat(request))
