"""ConsumerGroupDescribe v0-1. Members, epochs and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.authorized_operations import GROUP_OPERATIONS
from ottla.broker.context import RequestContext
from ottla.broker.steps import Steps, all_of, run
from ottla.common.errors import ApiError, ErrorCode
from ottla.groups.describe import describe_consumer
from ottla.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

    Described = ConsumerGroupDescribeResponse.DescribedGroup


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Awaitable[ConsumerGroupDescribeResponse]:
    return run(_describe_all(broker, request))


def _describe_all(broker: Broker, request: ConsumerGroupDescribeRequest) -> Steps[ConsumerGroupDescribeResponse]:
    groups = yield from all_of(_describe(broker, group_id) for group_id in request.group_ids)
    if request.include_authorized_operations:
        for one in groups:
            if not one.error_code:
                one.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(broker: Broker, group_id: str) -> Steps[Described]:
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        out = broker.groups.shard(group_id).read(lambda state: describe_consumer(state, group_id))
        described: Described = yield from broker.groups.finished(out)
        return described
    except ApiError as error:
        return ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=error.code)
