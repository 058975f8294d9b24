"""IncrementalAlterConfigs v0-1. SET and DELETE of single settings, APPEND and SUBTRACT of items of a list.

The changes of one resource are made together or not at all; resources do not depend on one another.
"""

from __future__ import annotations

from collections import Counter

from ottla.broker.broker import Broker
from ottla.broker.configs.config_changes import Change
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Steps[IncrementalAlterConfigsResponse]:
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    by = context.requester
    responses = []
    for one in request.resources:
        times = counts[one.resource_type, one.resource_name]
        response = yield from _alter(broker, by, one, request.validate_only, times)
        responses.append(response)
        yield None
    return IncrementalAlterConfigsResponse(responses=responses)


def _alter(
    broker: Broker,
    by: Requester,
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource,
    validate_only: bool,
    times: int,
) -> Steps[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]:
    kind, name = resource.resource_type, resource.resource_name
    response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_message=None, resource_type=kind, resource_name=name
    )
    try:
        if times > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        changes = yield from each(resource.configs, _change)
        yield broker.configs.change(kind, name, changes, validate_only=validate_only, by=by)
    except ApiError as error:
        response.error_code, response.error_message = error.code, error.message
    return response


def _change(config: IncrementalAlterConfigsRequest.AlterableConfig) -> Change:
    return Change(config.name, config.config_operation, config.value)
