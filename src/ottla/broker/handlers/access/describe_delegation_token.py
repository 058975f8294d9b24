"""DescribeDelegationToken v1-3 (KIP-48). The tokens that whoever asks owns, asked for or may renew, and those of which
an ACL lets them know."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.metadata.acls import Operation, ResourceType
from ottla.metadata.tokens import DelegationToken
from ottla.protocol.messages import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse

Described = DescribeDelegationTokenResponse.DescribedDelegationToken


def handle(
    broker: Broker, context: RequestContext, request: DescribeDelegationTokenRequest
) -> Steps[DescribeDelegationTokenResponse]:
    principal, now_ms = context.principal, broker.clock.now_ms()
    if not broker.tokens.may_be_asked(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, tokens=[])
    if not broker.tokens.is_on:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, tokens=[])
    ask = None if broker.access is None else broker.access.of(context)
    owners = None
    if request.owners is not None:
        owners = [f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners]
    found = []
    for token in broker.image.tokens.values():
        yield None
        if token.expires_ms < now_ms or (owners is not None and not any(map(token.is_of, owners))):
            continue
        if (
            token.is_of(principal)
            or ask is None
            or ask.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id, tells=False)
            or ask.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, tells=False)
        ):
            found.append(_described(token, broker.tokens.hmac_of(token)))
    return DescribeDelegationTokenResponse(tokens=found)


def _described(token: DelegationToken, proof: bytes) -> Described:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return DescribeDelegationTokenResponse.DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=proof,
        renewers=[
            DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
