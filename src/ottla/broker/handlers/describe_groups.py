"""DescribeGroups v0-6. Classic groups in whatever state; others are Dead to it (v6: GROUP_ID_NOT_FOUND)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.authorized_operations import GROUP_OPERATIONS
from ottla.broker.context import RequestContext
from ottla.broker.steps import Steps, all_of, run
from ottla.common.errors import ApiError
from ottla.groups.describe import describe_classic
from ottla.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(
    broker: Broker, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    return run(_describe_all(broker, context.version, request))


def _describe_all(broker: Broker, version: int, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    groups = yield from all_of(_describe(broker, group_id, version) for group_id in request.groups)
    if request.include_authorized_operations:
        for one in groups:
            if not one.error_code:
                one.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def _describe(broker: Broker, group_id: str, version: int) -> Steps[DescribeGroupsResponse.DescribedGroup]:
    try:
        out = broker.groups.shard(group_id).read(lambda state: describe_classic(state, group_id, version))
        described: DescribeGroupsResponse.DescribedGroup = yield from broker.groups.finished(out)
        return described
    except ApiError as error:
        return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.code)
