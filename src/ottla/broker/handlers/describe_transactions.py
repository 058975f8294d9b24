"""DescribeTransactions v0. Transactions are not here yet: no transactional id is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            DescribeTransactionsResponse.TransactionState(
                transactional_id=one,
                error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if one else ErrorCode.INVALID_REQUEST,
            )
            for one in request.transactional_ids
        ]
    )
