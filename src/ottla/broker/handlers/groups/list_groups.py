"""ListGroups v0-5. All groups of this broker, by state (v4) and type (v5).

While groups are still being loaded the answer says so, and holds those that are there.
"""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.groups.describe import list_groups
from ottla.protocol.messages import ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, context: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    response = ListGroupsResponse()
    found = []
    for shard in broker.groups.runtime.all():
        yield None
        if shard.is_loading:
            response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            continue
        try:
            out = shard.read(lambda state: list_groups(state, request.states_filter, request.types_filter))
            found += yield from answered(out)
        except ApiError as error:
            response.error_code = error.code
    response.groups = found
    return response
