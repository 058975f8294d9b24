"""AddOffsetsToTxn v0-4. The transaction will commit offsets of this group: its offsets partition joins in."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.broker.coordinators.transactions.transaction_errors import for_version
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_KNOWS_FENCED_SINCE = 2
_CLASSIC = 0


def handle(broker: Broker, context: RequestContext, request: AddOffsetsToTxnRequest) -> Steps[AddOffsetsToTxnResponse]:
    version = context.version
    try:
        if not request.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not broker.groups.runtime.has_topic:
            yield broker.groups.runtime.make_topic()
        partition = broker.groups.runtime.partition_of(request.group_id)
        yield from answered(
            broker.transactions.add_partitions(
                request.transactional_id, request.producer_id, request.producer_epoch, [partition], _CLASSIC
            )
        )
    except ApiError as error:
        return AddOffsetsToTxnResponse(error_code=for_version(error.code, version, _KNOWS_FENCED_SINCE))
    return AddOffsetsToTxnResponse()
