"""FindCoordinator v0-6. The coordinator of a group or a transactional id leads the partition that it lives in.

The first look-up of a group makes `__consumer_offsets`, that of a transactional id `__transaction_state`. Share groups
are refused as by a Kafka without them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.runtime import CoordinatorRuntime
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_BATCHED_SINCE = 4


class _Found(NamedTuple):
    """Who coordinates, or why that cannot be told."""

    node_id: int = -1
    host: str = ""
    port: int = -1
    error: ErrorCode = ErrorCode.NONE
    message: str | None = ""


def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest) -> Steps[FindCoordinatorResponse]:
    version, listener = context.version, context.listener
    runtimes: dict[int, CoordinatorRuntime[Any]] = {
        _GROUP: broker.groups.runtime,
        _TRANSACTION: broker.transactions.runtime,
    }
    runtime = runtimes.get(request.key_type)
    if runtime is None:
        is_share = request.key_type == _SHARE
        why = "share groups are not served" if is_share else f"there is no coordinator of type {request.key_type}"
        refused = _Found(error=ErrorCode.INVALID_REQUEST, message=why)
        return (yield from _answer(version, request, lambda _: refused))
    if not runtime.has_topic:
        try:
            yield runtime.make_topic()
        except ApiError as error:
            missing = _Found(error=ErrorCode.COORDINATOR_NOT_AVAILABLE, message=error.message)
            return (yield from _answer(version, request, lambda _: missing))
    return (yield from _answer(version, request, partial(_find, broker.image, listener, runtime)))


def _find(image: ClusterImage, listener: str, runtime: CoordinatorRuntime[Any], key: str) -> _Found:
    """Whoever leads the partition that a group or a transactional id lives in coordinates it."""
    try:
        where = runtime.partition_of(key)
    except ApiError as error:
        return _Found(error=error.code, message=error.message)
    topic = image.topics.get(where.topic)
    leader = None if topic is None else image.brokers.get(topic.partitions[where.partition].leader)
    endpoint = None if leader is None else leader.endpoints.get(listener)
    if leader is None or endpoint is None:
        return _Found(error=ErrorCode.COORDINATOR_NOT_AVAILABLE, message=f"{where} has no leader now")
    return _Found(leader.id, *endpoint)


def _answer(
    version: int, request: FindCoordinatorRequest, find: Callable[[str], _Found]
) -> Steps[FindCoordinatorResponse]:
    if version < _BATCHED_SINCE:
        found = find(request.key)
        return FindCoordinatorResponse(
            error_code=found.error,
            error_message=found.message or found.error.name,  # Kafka's word for "no error" is NONE
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    coordinators = yield from each(request.coordinator_keys, lambda key: _coordinator(key, find(key)))
    return FindCoordinatorResponse(coordinators=coordinators)


def _coordinator(key: str, found: _Found) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        error_code=found.error,
        error_message=found.message,
    )
