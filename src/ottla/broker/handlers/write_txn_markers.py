"""WriteTxnMarkers v1-2. Ends a transaction in the partitions named, by hand: how a hanging transaction is aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_R = WriteTxnMarkersResponse
_Marker = WriteTxnMarkersRequest.WritableTxnMarker


def handle(broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return _R(
        markers=[
            _R.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    _R.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            _R.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=_write(broker, marker, topic.name, index)
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(broker: Broker, marker: _Marker, topic: str, index: int) -> ErrorCode:
    if broker.partitions.get(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        broker.transactions.write_marker(
            topic,
            index,
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
        )
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
