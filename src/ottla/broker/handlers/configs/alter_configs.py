"""AlterConfigs v0-2. Replaces all settings of each resource; what is not given goes back to its default.

Kept for old clients: IncrementalAlterConfigs does not lose what another client has set.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.configs.altering import alter_each
from ottla.broker.context import RequestContext
from ottla.common.steps import Steps
from ottla.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def handle(broker: Broker, context: RequestContext, request: AlterConfigsRequest) -> Steps[AlterConfigsResponse]:
    by = context.requester

    def replace(resource: AlterConfigsRequest.AlterConfigsResource) -> Steps[Any]:
        configs = [(config.name, config.value) for config in resource.configs]
        kind, name = resource.resource_type, resource.resource_name
        yield broker.configs.replace(kind, name, configs, validate_only=request.validate_only, by=by)

    responses = yield from alter_each(request.resources, replace, AlterConfigsResponse.AlterConfigsResourceResponse)
    return AlterConfigsResponse(responses=responses)
