"""EndTxn v0-5. Commit or abort. With v5 (transactions v2) the answer carries the epoch of the next transaction."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.transactions.transaction_errors import for_version
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import EndTxnRequest, EndTxnResponse

_KNOWS_FENCED_SINCE = 2
_V2_SINCE = 5


def handle(broker: Broker, context: RequestContext, request: EndTxnRequest) -> Steps[EndTxnResponse]:
    version = context.version
    try:
        if not request.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        identity = yield from broker.transactions.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            2 if version >= _V2_SINCE else 0,
        )
    except ApiError as error:
        return EndTxnResponse(error_code=for_version(error.code, version, _KNOWS_FENCED_SINCE))
    return EndTxnResponse(producer_id=identity.producer_id, producer_epoch=identity.epoch)
