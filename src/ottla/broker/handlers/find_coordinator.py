"""FindCoordinator v0-6. On one node the coordinator of every group and transaction is this broker.

The first look-up of a group makes `__consumer_offsets`, that of a transactional id `__transaction_state`. Share groups
are refused as by a Kafka without them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_BATCHED_SINCE = 4
Node = tuple[int, str, int]
_NO_NODE: Node = (-1, "", -1)


def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest) -> Steps[FindCoordinatorResponse]:
    is_batched = context.version >= _BATCHED_SINCE
    host, port = broker.advertised_address(context.listener)
    node = (broker.node_id, host, port)
    if request.key_type == _SHARE:
        text = "share groups are not served"
        return (yield from _refused(request, is_batched, ErrorCode.INVALID_REQUEST, text))
    if request.key_type not in (_GROUP, _TRANSACTION):
        text = f"there is no coordinator of type {request.key_type}"
        return (yield from _refused(request, is_batched, ErrorCode.INVALID_REQUEST, text))
    runtime = broker.groups.runtime if request.key_type == _GROUP else broker.transactions.runtime
    if not runtime.has_topic:
        try:
            yield runtime.make_topic()
        except ApiError as error:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return (yield from _refused(request, is_batched, code, error.message))
    return (yield from _answer(request, is_batched, node))


def _refused(
    request: FindCoordinatorRequest, is_batched: bool, error: ErrorCode, message: str | None
) -> Steps[FindCoordinatorResponse]:
    return _answer(request, is_batched, _NO_NODE, error, message)


def _answer(
    request: FindCoordinatorRequest,
    is_batched: bool,
    node: Node,
    error: ErrorCode = ErrorCode.NONE,
    message: str | None = "",
) -> Steps[FindCoordinatorResponse]:
    node_id, host, port = node
    if not is_batched:
        message = message or error.name  # Kafka's word for "no error" is NONE
        return FindCoordinatorResponse(error_code=error, error_message=message, node_id=node_id, host=host, port=port)
    coordinator = partial(
        FindCoordinatorResponse.Coordinator,
        node_id=node_id,
        host=host,
        port=port,
        error_code=error,
        error_message=message,
    )
    found = yield from each(request.coordinator_keys, lambda key: coordinator(key=key))
    return FindCoordinatorResponse(coordinators=found)
