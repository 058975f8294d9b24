"""ListPartitionReassignments v0. With one broker nothing is ever on the move."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.protocol.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
