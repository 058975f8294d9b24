"""Envelope v0. A request for the controller that a client sent to another broker; the answer goes back that way.

Whoever sends one says for whom it asks, so it is taken from the listener of brokers only (and, with an authorizer, of
those who may do ClusterAction)."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import EnvelopeRequest, EnvelopeResponse


def handle(broker: Broker, context: RequestContext, request: EnvelopeRequest) -> Steps[EnvelopeResponse]:
    if not broker.is_clustered or not broker.is_controller:
        return EnvelopeResponse(response_data=None, error_code=ErrorCode.NOT_CONTROLLER)
    if context.listener != broker.config.listener_of_brokers.name:
        return EnvelopeResponse(response_data=None, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    inner = RequestContext(0, 0, 0, None, request.client_host_address.decode(), context.listener, context.connection_id)
    inner.principal = (request.request_principal or b"").decode() or inner.principal
    inner.is_forwarded = True
    answer = yield broker.answer_enclosed(inner, bytes(request.request_data))
    return EnvelopeResponse(response_data=answer)
