"""InitProducerId v0-5. A fresh id for an idempotent producer.

A producer that names its old id and epoch (v3) has had an error and starts anew: it gets a new id as well, for without
a transactional id the broker keeps nothing that its epoch could be compared with. Transactions are not here yet: a
transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one refusal that the Java client and
librdkafka both take as final; others are retried until the application's patience ends.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.broker")

_NO_PRODUCER_ID, _NO_EPOCH = -1, -1


async def handle(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if (request.producer_id == _NO_PRODUCER_ID) != (request.producer_epoch == _NO_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        if not request.transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        log.warning("refused a transactional producer: transactions are not supported yet")
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        producer_id = await broker.producer_ids.take()
    except ApiError:
        # As a Kafka that has no block of ids at hand: the producer asks again.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NO_PRODUCER_ID, producer_epoch=_NO_EPOCH)
