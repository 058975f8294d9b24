"""AlterPartitionReassignments v0-1. Replicas move to other brokers, or a move is cancelled (`ottla.controller`
decides)."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.chores.deadlines import in_time
from ottla.broker.context import RequestContext
from ottla.controller.reassignments import alter_reassignments
from ottla.protocol.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse


def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Awaitable[AlterPartitionReassignmentsResponse]:
    plan, by = partial(alter_reassignments, request=request, rules=broker.rules), context.requester
    return in_time(request.timeout_ms, lambda: broker.topics.change_topics(plan, by))
