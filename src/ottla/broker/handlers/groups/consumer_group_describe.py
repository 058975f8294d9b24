"""ConsumerGroupDescribe v0-1. Members, epochs and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from ottla.broker.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, all_of
from ottla.groups.describe import describe_consumer
from ottla.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

Described = ConsumerGroupDescribeResponse.DescribedGroup


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Steps[ConsumerGroupDescribeResponse]:
    """What is named twice is told once: otherwise a small request could ask for an answer without end."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    groups = yield from all_of(_describe(broker, operations, group_id) for group_id in dict.fromkeys(request.group_ids))
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(broker: Broker, operations: int, group_id: str) -> Steps[Described]:
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        out = broker.groups.shard(group_id).read(lambda state: describe_consumer(state, group_id))
        described: Described = yield from answered(out)
        if not described.error_code:
            described.authorized_operations = operations
        return described
    except ApiError as error:
        return ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=error.code)
