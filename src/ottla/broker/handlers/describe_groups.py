"""DescribeGroups v0-6. Classic groups in whatever state; others are Dead to it (v6: GROUP_ID_NOT_FOUND)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorized_operations import GROUP_OPERATIONS
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError
from ottla.groups.describe import describe_classic
from ottla.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: Broker, context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = [_describe(broker, group_id, context.version) for group_id in request.groups]
    if request.include_authorized_operations:
        for one in groups:
            if not one.error_code:
                one.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def _describe(broker: Broker, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
    try:
        return describe_classic(broker.groups.shard(group_id).state, group_id, version)
    except ApiError as error:
        return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.code)
