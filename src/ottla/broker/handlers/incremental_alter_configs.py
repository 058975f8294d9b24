"""IncrementalAlterConfigs v0-1. SET and DELETE of single settings, APPEND and SUBTRACT of items of a list.

The changes of one resource are made together or not at all; resources do not depend on one another.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.config_changes import Change
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    return IncrementalAlterConfigsResponse(
        responses=[
            await _alter(broker, context, one, request.validate_only, counts[one.resource_type, one.resource_name])
            for one in request.resources
        ]
    )


async def _alter(
    broker: Broker,
    context: RequestContext,
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource,
    validate_only: bool,
    times: int,
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_message=None, resource_type=kind, resource_name=name
    )
    try:
        if times > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        changes = [Change(one.name, one.config_operation, one.value) for one in resource.configs]
        await broker.configs.change(kind, name, changes, validate_only=validate_only, by=context.requester)
    except ApiError as error:
        response.error_code, response.error_message = error.code, error.message
    return response
