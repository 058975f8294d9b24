"""ExpireDelegationToken v1-2 (KIP-48). Ends a token, now or in a while."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(
    broker: Broker, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    principal, host, tokens = context.principal, context.client_host, broker.tokens
    try:
        if not tokens.may_be_asked(context):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not tokens.is_on:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        token = await tokens.expire(bytes(request.hmac), principal, request.expiry_time_period_ms, context.requester)
    except ApiError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    audit.tell("token expired", principal, host, **audit.token(token))
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)
