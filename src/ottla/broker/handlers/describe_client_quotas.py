"""DescribeClientQuotas v0-1. There are no quotas yet, so a well-formed question has an empty answer."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

_ENTITY_TYPES = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _ANY = 0, 1, 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    types = {component.entity_type for component in request.components}
    for component in request.components:
        if component.entity_type not in _ENTITY_TYPES:
            return _refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {component.entity_type}")
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            return _refused(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
    if "ip" in types and len(types) > 1:
        return _refused(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component.",
        )
    return DescribeClientQuotasResponse()


def _refused(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
