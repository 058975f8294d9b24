"""IncrementalAlterConfigs v0-1. SET and DELETE of single settings, APPEND and SUBTRACT of items of a list.

The changes of one resource are made together or not at all; resources do not depend on one another.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.configs.altering import alter_each
from ottla.broker.configs.config_changes import Change
from ottla.broker.context import RequestContext
from ottla.common.steps import Steps, each
from ottla.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Steps[IncrementalAlterConfigsResponse]:
    by = context.requester

    def change(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Steps[Any]:
        changes = yield from each(resource.configs, _change)
        kind, name = resource.resource_type, resource.resource_name
        yield broker.configs.change(kind, name, changes, validate_only=request.validate_only, by=by)

    answer = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(responses=(yield from alter_each(request.resources, change, answer)))


def _change(config: IncrementalAlterConfigsRequest.AlterableConfig) -> Change:
    return Change(config.name, config.config_operation, config.value)
