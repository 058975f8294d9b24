"""SaslAuthenticate v0-2. Here it comes from clients of listeners without SASL; others are heard by `logins/gate.py`."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(broker: Broker, context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )
