"""InitProducerId v0-5. An identity for an idempotent or a transactional producer.

An idempotent producer that names its old id and epoch (v3) has had an error and starts anew: it gets a new id as well,
for without a transactional id the broker keeps nothing that its epoch could be compared with. A transactional id gets
a higher epoch, which fences whoever held it before and aborts what that one left open.
"""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.transactions.transaction_errors import for_version
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from ottla.transactions.coordinator import ProducerIdentity

_NO_PRODUCER_ID, _NO_EPOCH = -1, -1
_KNOWS_FENCED_SINCE = 4


def handle(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> Steps[InitProducerIdResponse]:
    version = context.version
    try:
        if (request.producer_id == _NO_PRODUCER_ID) != (request.producer_epoch == _NO_EPOCH):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is None:
            identity = ProducerIdentity((yield broker.producer_ids.take()), 0)
        else:
            identity = yield from _transactional(broker, request, request.transactional_id)
    except ApiError as error:
        if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            # As a Kafka that has no block of ids at hand: the producer asks again.
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return _refused(for_version(error.code, version, _KNOWS_FENCED_SINCE))
    return InitProducerIdResponse(producer_id=identity.producer_id, producer_epoch=identity.epoch)


def _transactional(broker: Broker, request: InitProducerIdRequest, transactional_id: str) -> Steps[ProducerIdentity]:
    expected = None
    if request.producer_id != _NO_PRODUCER_ID:
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id has at least one character")
    if not broker.transactions.runtime.has_topic:
        yield broker.transactions.runtime.make_topic()
    return (yield from broker.transactions.init_producer(transactional_id, request.transaction_timeout_ms, expected))


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NO_PRODUCER_ID, producer_epoch=_NO_EPOCH)
