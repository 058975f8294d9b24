"""SyncGroup v0-5. Parks a follower until the leader's assignment is in the log."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import asked
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import SyncGroupRequest, SyncGroupResponse

# From this version on a member must say which protocol it believes to have been chosen.
_PROTOCOL_SINCE = 5


def handle(broker: Broker, context: RequestContext, request: SyncGroupRequest) -> Steps[SyncGroupResponse]:
    if context.version >= _PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    shard = broker.groups.shard(request.group_id)
    return asked(lambda ticket: shard.sync(request, ticket))
