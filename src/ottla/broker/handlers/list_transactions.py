"""ListTransactions v0-2. Transactional ids with their states; filters by state, producer, age and pattern."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.broker.steps import Steps, run
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_STATES = {state.text: state for state in TxnState}
# A state of Kafka's that is never stored: known, and without transactions.
_KNOWN = frozenset((*_STATES, "PrepareEpochFence"))


def handle(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse | Awaitable[ListTransactionsResponse]:
    return run(_list(broker, request))


def _list(broker: Broker, request: ListTransactionsRequest) -> Steps[ListTransactionsResponse]:
    pattern = None
    if request.transactional_id_pattern:
        try:
            pattern = compile_pattern(request.transactional_id_pattern)
        except BadPattern:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    if broker.transactions.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    now_ms = broker.transactions.now_ms()
    found: list[Transaction] = []
    for shard in broker.transactions.all_shards():
        found += shard.coordinator
        try:
            yield from broker.transactions.durable(shard)
        except ApiError as error:
            return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=[one for one in request.state_filters if one not in _KNOWN],
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.text,
            )
            for one in found
            if _wanted(one, request, now_ms) and (pattern is None or pattern.fullmatch(one.transactional_id.encode()))
        ],
    )


def _wanted(one: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    if request.state_filters and one.state.text not in request.state_filters:
        return False
    if request.producer_id_filters and one.producer_id not in request.producer_id_filters:
        return False
    # As Kafka: an id without a transaction counts as older than anything.
    return request.duration_filter < 0 or now_ms - one.started_ms > request.duration_filter
