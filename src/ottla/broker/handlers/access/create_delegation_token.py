"""CreateDelegationToken v1-3 (KIP-48, 373). A token for whoever asks, or for somebody whose tokens they may make."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.protocol.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse

_USER = "User"


async def handle(
    broker: Broker, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester, host, tokens = context.principal, context.client_host, broker.tokens
    kind, name = request.owner_principal_type, request.owner_principal_name
    owner = f"{kind or _USER}:{name}" if name else requester
    if not tokens.may_be_asked(context):
        return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, owner, requester)
    ask = None if broker.access is None else broker.access.of(context)
    if kind not in (None, "", _USER):  # who logs in with a token is a user: an ACL for that one would not be asked
        return _refused(ErrorCode.INVALID_PRINCIPAL_TYPE, owner, requester)
    if owner != requester and ask is not None and not ask.may(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, owner, requester)
    if not tokens.is_on:
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, owner, requester)
    if any(renewer.principal_type != _USER for renewer in request.renewers):
        return _refused(ErrorCode.INVALID_PRINCIPAL_TYPE, owner, requester)
    renewers = [f"{_USER}:{renewer.principal_name}" for renewer in request.renewers]
    token = await tokens.create(owner, requester, renewers, request.max_lifetime_ms, context.requester)
    audit.tell("token created", requester, host, **audit.token(token))
    answer = _refused(ErrorCode.NONE, owner, requester)
    answer.issue_timestamp_ms, answer.expiry_timestamp_ms = token.issued_ms, token.expires_ms
    answer.max_timestamp_ms, answer.token_id, answer.hmac = token.max_ms, token.id, tokens.hmac_of(token)
    return answer


def _refused(code: ErrorCode, owner: str, requester: str) -> CreateDelegationTokenResponse:
    owner_type, _, owner_name = owner.partition(":")
    requester_type, _, requester_name = requester.partition(":")
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
        token_id="",
        hmac=b"",
    )
