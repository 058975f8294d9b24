"""RenewDelegationToken v1-2 (KIP-48). Makes a token last longer, up to its end."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(
    broker: Broker, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    principal, host, tokens = context.principal, context.client_host, broker.tokens
    try:
        if not tokens.may_be_asked(context):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not tokens.is_on:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        token = await tokens.renew(bytes(request.hmac), principal, request.renew_period_ms, context.requester)
    except ApiError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    audit.tell("token renewed", principal, host, **audit.token(token))
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)
