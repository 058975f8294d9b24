"""ConsumerGroupDescribe v0-1. Members, epochs and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorized_operations import GROUP_OPERATIONS
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.groups.describe import describe_consumer
from ottla.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

    Described = ConsumerGroupDescribeResponse.DescribedGroup


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = [_describe(broker, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for one in groups:
            if not one.error_code:
                one.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(broker: Broker, group_id: str) -> Described:
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        return describe_consumer(broker.groups.shard(group_id).state, group_id)
    except ApiError as error:
        return ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=error.code)
