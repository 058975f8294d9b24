"""UnregisterBroker v0. Forgets a broker that will not come back; one that is there cannot be forgotten."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.metadata import nodes
from ottla.metastore.port import Delete
from ottla.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(
    broker: Broker, context: RequestContext, request: UnregisterBrokerRequest
) -> Steps[UnregisterBrokerResponse]:
    image, wanted = broker.image, request.broker_id
    if wanted not in image.registrations and wanted != broker.node_id:
        return _refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {wanted} is not currently registered")
    if not broker.is_clustered:
        return _refused(ErrorCode.INVALID_REQUEST, "The only broker of a cluster cannot be unregistered.")
    if wanted in image.present:
        return _refused(ErrorCode.INVALID_REQUEST, f"Broker {wanted} is alive: stop it first.")
    holding = sum(wanted in partition.replicas for topic in image.topics.values() for partition in topic.partitions)
    if holding:
        why = f"Broker {wanted} has replicas of {holding} partitions: move them to other brokers first."
        return _refused(ErrorCode.INVALID_REQUEST, why)
    forget = broker.topics.commit_and_adopt([Delete(nodes.broker_epoch_path(wanted))])
    yield broker.topics.change(forget, context.requester)
    return UnregisterBrokerResponse(error_message=None)


def _refused(code: ErrorCode, why: str) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=why)
