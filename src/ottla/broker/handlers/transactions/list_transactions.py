"""ListTransactions v0-2. Transactional ids with their states; filters by state, producer, age and pattern."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.coordinator_shard import answered
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.common.steps import Steps
from ottla.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import Transaction

_STATES = {state.text: state for state in TxnState}
# A state of Kafka's that is never stored: known, and without transactions.
_KNOWN = frozenset((*_STATES, "PrepareEpochFence"))


def handle(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> Steps[ListTransactionsResponse]:
    pattern = None
    if request.transactional_id_pattern:
        try:
            pattern = compile_pattern(request.transactional_id_pattern)
        except BadPattern:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    if broker.transactions.runtime.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    now_ms = broker.transactions.now_ms()
    known: list[Transaction] = []
    for shard in broker.transactions.runtime.all():
        try:
            known += yield from answered(shard.read(list))
        except ApiError as error:
            return ListTransactionsResponse(error_code=error.code)
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    found = []
    for transaction in known:
        yield None
        if states and transaction.state.text not in states:
            continue
        if producer_ids and transaction.producer_id not in producer_ids:
            continue
        # As Kafka: an id without a transaction counts as older than anything.
        if request.duration_filter >= 0 and now_ms - transaction.started_ms <= request.duration_filter:
            continue
        if pattern is None or pattern.fullmatch(transaction.transactional_id.encode()):
            found.append(_state(transaction))
    return ListTransactionsResponse(
        unknown_state_filters=[state for state in request.state_filters if state not in _KNOWN],
        transaction_states=found,
    )


def _state(transaction: Transaction) -> ListTransactionsResponse.TransactionState:
    return ListTransactionsResponse.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.text,
    )
