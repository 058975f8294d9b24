"""DescribeGroups v0-6. Classic groups in whatever state; others are Dead to it (v6: GROUP_ID_NOT_FOUND)."""

from __future__ import annotations

from functools import partial

from ottla.broker.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError
from ottla.common.steps import Steps, all_of
from ottla.groups.describe import describe_classic
from ottla.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse


def handle(broker: Broker, context: RequestContext, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    """What is named twice is told once: otherwise a small request could ask for an answer without end."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    describe = partial(_describe, broker, context.version, operations)
    groups = yield from all_of(describe(group_id) for group_id in dict.fromkeys(request.groups))
    return DescribeGroupsResponse(groups=groups)


def _describe(
    broker: Broker, version: int, operations: int, group_id: str
) -> Steps[DescribeGroupsResponse.DescribedGroup]:
    try:
        out = broker.groups.shard(group_id).read(lambda state: describe_classic(state, group_id, version))
        described: DescribeGroupsResponse.DescribedGroup = yield from answered(out)
        if not described.error_code:
            described.authorized_operations = operations
        return described
    except ApiError as error:
        return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.code)
