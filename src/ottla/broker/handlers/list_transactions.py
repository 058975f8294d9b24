"""ListTransactions v0-2. Transactions are not here yet, so there are none to list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_STATES = frozenset(
    (
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    )
)


def handle(broker: Broker, context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    if request.transactional_id_pattern:
        try:
            re.compile(request.transactional_id_pattern)
        except (re.error, RecursionError, OverflowError):
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return ListTransactionsResponse(unknown_state_filters=[one for one in request.state_filters if one not in _STATES])
