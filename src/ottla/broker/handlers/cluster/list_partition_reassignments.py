"""ListPartitionReassignments v0. Which replicas are on the move."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.controller.reassignments import list_reassignments
from ottla.protocol.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return list_reassignments(broker.image, request)
