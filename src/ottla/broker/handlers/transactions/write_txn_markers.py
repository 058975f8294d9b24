"""WriteTxnMarkers v1-2. Ends a transaction in the partitions named: for its coordinator on another broker, or by hand,
which is how a hanging transaction is aborted.

All markers are written before the first is waited for; the answer tells of those that are committed. It goes out when
all of them are. A coordinator is answered after half a second at the latest: one partition whose replicas or disk take
long must not hold up what is known of the others, and what it has to say next. Asked for again, what is still on its
way is waited for (`uncommitted_markers.py`). Whoever asks by hand does so once, takes REQUEST_TIMED_OUT for a failure,
as Kafka's clients do, and is answered as late as there.
"""

from __future__ import annotations

import asyncio

from ottla.broker.broker import Broker
from ottla.broker.cluster.peers import client_id_of
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.transactions.uncommitted_markers import AskedMarker
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps
from ottla.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from ottla.records.marker import control_batch

_R = WriteTxnMarkersResponse
_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Row = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
# Transactions of this version end with a new epoch.
_BUMPS_SINCE = 2
_ANSWER_WITHIN_S = 0.5
# Who asks by hand has given up by then.
_ANSWER_BY_HAND_WITHIN_S = 30


def handle(broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse]:
    within_s = _ANSWER_WITHIN_S if _is_of_coordinator(broker, context) else _ANSWER_BY_HAND_WITHIN_S
    results = []
    waiting: list[tuple[_Row, asyncio.Future[None]]] = []
    for marker in request.markers:
        topics = []
        for topic in marker.topics:
            rows = []
            for index in topic.partition_indexes:
                row = _Row(partition_index=index, error_code=ErrorCode.NONE)
                rows.append(row)
                try:
                    promise = _write(broker, marker, TopicPartition(topic.name, index))
                    if promise is not None:
                        waiting.append((row, promise))
                except ApiError as error:
                    row.error_code = error.code
                yield None
            topics.append(_R.WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
        results.append(_R.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    if waiting:
        yield _all_committed(waiting, within_s)
    return _R(markers=results)


def _is_of_coordinator(broker: Broker, context: RequestContext) -> bool:
    """Anybody may take such a name, and is only answered sooner."""
    return any(context.client_id == client_id_of(other) for other in broker.image.brokers)


def _write(broker: Broker, marker: _Marker, where: TopicPartition) -> asyncio.Future[None] | None:
    """What to wait for until it is committed, if anything. Raises ApiError."""
    commit, uncommitted = marker.transaction_result, broker.transactions.markers.uncommitted
    asked = AskedMarker(where, marker.producer_id, marker.producer_epoch, commit, marker.coordinator_epoch)
    if (promise := uncommitted.get(asked)) is not None:
        return promise
    partition = broker.partitions.get(*where)
    known = None if partition is None else partition.log.producers.entries.get(marker.producer_id)
    if known is not None and marker.transaction_version >= _BUMPS_SINCE:
        # The epoch that is known may be the marker's own: a leader before us wrote it and did not get it committed.
        # Then it is written once more. Refused, as in Kafka, it would be taken for needless, and could still be cut
        # off. With a transaction open in that epoch it is one of long ago.
        is_open = known.txn_first_offset >= 0
        if marker.producer_epoch < known.epoch or (marker.producer_epoch == known.epoch and is_open):
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
    now_ms = broker.clock.now_ms()
    batch = control_batch(marker.producer_id, marker.producer_epoch, commit, marker.coordinator_epoch, now_ms)
    waiting = broker.transactions.markers.write(where, marker.producer_id, commit, batch)
    return None if waiting is None else uncommitted.keep(asked, waiting)


async def _all_committed(waiting: list[tuple[_Row, asyncio.Future[None]]], within_s: float) -> None:
    await asyncio.wait({promise for _, promise in waiting}, timeout=within_s)
    for row, promise in waiting:
        if not promise.done():
            row.error_code = ErrorCode.REQUEST_TIMED_OUT
        elif (error := promise.exception()) is not None:
            row.error_code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
