"""ListConfigResources v0-1. The resources that have configuration, of the kinds asked for or of all.

Version 0 knows client metrics subscriptions only and has no way to ask for anything else.
"""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.configs.config_service import ResourceType
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

_ALL = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle(
    broker: Broker, context: RequestContext, request: ListConfigResourcesRequest
) -> Steps[ListConfigResourcesResponse]:
    wanted: set[int] = {ResourceType.CLIENT_METRICS} if context.version == 0 else set(request.resource_types or _ALL)
    if not wanted <= set(_ALL):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    named = [(kind, name) for kind in _ALL if kind in wanted for name in broker.configs.resource_names(kind)]
    return ListConfigResourcesResponse(config_resources=(yield from each(named, _resource)))


def _resource(named: tuple[ResourceType, str]) -> ListConfigResourcesResponse.ConfigResource:
    return ListConfigResourcesResponse.ConfigResource(resource_name=named[1], resource_type=named[0])
