"""SaslHandshake v0-1. Here it comes from clients of listeners without SASL; others are heard by `logins/gate.py`."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


def handle(broker: Broker, context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
