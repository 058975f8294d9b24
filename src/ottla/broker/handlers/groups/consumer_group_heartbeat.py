"""ConsumerGroupHeartbeat v0-1. Joins, stays in, or leaves a consumer group (KIP-848)."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.codec import Message
from ottla.protocol.messages import ConsumerGroupHeartbeatRequest


def handle(broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Steps[Message]:
    groups = broker.groups
    if "consumer" not in broker.config.group_coordinator_rebalance_protocols:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "the consumer protocol is not enabled on this broker")
    out = groups.shard(request.group_id).consumer_heartbeat(groups.client(context), request)
    return answered(out)
