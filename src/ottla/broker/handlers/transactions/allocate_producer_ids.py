"""AllocateProducerIds v0. Another broker of the cluster wants a block of producer ids; only the controller has them."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.producer_ids import BLOCK_SIZE
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def handle(
    broker: Broker, context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    try:
        if not broker.is_controller:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        known = broker.image.registrations.get(request.broker_id)
        if known is None:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if known.epoch != request.broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        first = await broker.topics.take_producer_ids(BLOCK_SIZE)
    except ApiError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
