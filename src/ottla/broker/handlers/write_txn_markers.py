"""WriteTxnMarkers v1-2. Ends a transaction in the partitions named, by hand: how a hanging transaction is aborted."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.coordinators.transaction_markers import control_batch
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.steps import Steps
from ottla.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_R = WriteTxnMarkersResponse
_Marker = WriteTxnMarkersRequest.WritableTxnMarker
# Transactions of this version end with a new epoch.
_BUMPS_SINCE = 2


def handle(broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse]:
    results = []
    for marker in request.markers:
        topics = []
        for topic in marker.topics:
            rows = []
            for index in topic.partition_indexes:
                code = yield from _write(broker, marker, TopicPartition(topic.name, index))
                rows.append(_R.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
                yield None
            topics.append(_R.WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
        results.append(_R.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    return _R(markers=results)


def _write(broker: Broker, marker: _Marker, where: TopicPartition) -> Steps[ErrorCode]:
    partition = broker.partitions.get(*where)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    known = partition.log.producers.entries.get(marker.producer_id)
    if known is not None and marker.transaction_version >= _BUMPS_SINCE and marker.producer_epoch <= known.epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    commit = marker.transaction_result
    now_ms = broker.clock.now_ms()
    batch = control_batch(marker.producer_id, marker.producer_epoch, commit, marker.coordinator_epoch, now_ms)
    try:
        waiting = broker.transactions.markers.write(where, marker.producer_id, commit, batch)
        if waiting is not None:
            yield waiting
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
