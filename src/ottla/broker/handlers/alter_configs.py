"""AlterConfigs v0-2. Replaces all settings of each resource; what is not given goes back to its default.

Kept for old clients: IncrementalAlterConfigs does not lose what another client has set.
"""

from __future__ import annotations

from collections import Counter

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def handle(broker: Broker, context: RequestContext, request: AlterConfigsRequest) -> Steps[AlterConfigsResponse]:
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    by = context.requester
    responses = []
    for one in request.resources:
        times = counts[one.resource_type, one.resource_name]
        response = yield from _alter(broker, by, one, request.validate_only, times)
        responses.append(response)
        yield None
    return AlterConfigsResponse(responses=responses)


def _alter(
    broker: Broker,
    by: Requester,
    resource: AlterConfigsRequest.AlterConfigsResource,
    validate_only: bool,
    times: int,
) -> Steps[AlterConfigsResponse.AlterConfigsResourceResponse]:
    kind, name = resource.resource_type, resource.resource_name
    response = AlterConfigsResponse.AlterConfigsResourceResponse(
        error_message=None, resource_type=kind, resource_name=name
    )
    try:
        if times > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        configs = [(one.name, one.value) for one in resource.configs]
        yield broker.configs.replace(kind, name, configs, validate_only=validate_only, by=by)
    except ApiError as error:
        response.error_code, response.error_message = error.code, error.message
    return response
