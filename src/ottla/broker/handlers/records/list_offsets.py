"""ListOffsets v1-11. Earliest, latest, by time, and the special timestamps that later versions added.

-1 latest (below the last stable offset with read_committed)    -2 earliest      -3 of the largest timestamp (v7)
-4 earliest local (v8): the same as earliest without tiers      -5 latest tiered (v9), -6 earliest pending upload
(v11): nothing is tiered here, so there is no such offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.partitions.epoch_fence import epoch_error
from ottla.broker.partitions.partition import Partition
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps
from ottla.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from ottla.storage.segments import timestamps

Asked = ListOffsetsRequest.ListOffsetsPartition
Found = ListOffsetsResponse.ListOffsetsPartitionResponse

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
# The version that first had each special timestamp; a client of an older one cannot mean it.
_FIRST_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED = 1


def handle(broker: Broker, context: RequestContext, request: ListOffsetsRequest) -> Steps[ListOffsetsResponse]:
    version = context.version
    committed = request.isolation_level == _READ_COMMITTED
    counts = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    topics = []
    for topic in request.topics:
        found = []
        for asked in {partition.partition_index: partition for partition in topic.partitions}.values():
            answer = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            if counts[topic.name, asked.partition_index] > 1:
                answer.error_code = ErrorCode.INVALID_REQUEST
            else:
                yield from _find(broker, version, topic.name, asked, committed, answer)
            found.append(answer)
            yield None
        topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=found))
    return ListOffsetsResponse(topics=topics)


def _find(broker: Broker, version: int, topic: str, asked: Asked, committed: bool, answer: Found) -> Steps[None]:
    partition = broker.partitions.get(topic, asked.partition_index)
    if partition is None:
        answer.error_code = broker.partitions.error_for(topic, asked.partition_index)
        return
    answer.error_code = epoch_error(partition, asked.current_leader_epoch)
    if answer.error_code != ErrorCode.NONE:
        return
    if asked.timestamp < 0 and version < _FIRST_VERSION.get(asked.timestamp, 32767):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return
    try:
        partition.log.check_usable()
        yield from _look_up(broker, partition, asked.timestamp, committed, answer)
    except OSError:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    except ApiError as error:
        answer.error_code = error.code


def _look_up(broker: Broker, partition: Partition, timestamp: int, committed: bool, answer: Found) -> Steps[None]:
    log, state = partition.log, partition.replication
    is_end_asked_for = timestamp == _LATEST or timestamp >= 0
    if is_end_asked_for and state is not None and log.high_watermark < state.epoch_start:
        # The leader before may have told of more (KIP-207): the end must not go back.
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
    end = log.last_stable_offset if committed else log.high_watermark
    if timestamp == _LATEST:
        answer.offset, answer.leader_epoch = end, partition.leader_epoch
    elif timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        answer.offset = log.log_start_offset
        answer.leader_epoch = log.leader_epochs.epoch_for(log.log_start_offset)
    elif timestamp >= 0 or timestamp == _MAX_TIMESTAMP:
        if timestamp == _MAX_TIMESTAMP:
            found = yield from timestamps.find_max_timestamp(log, _Elsewhere(broker))
        else:
            found = yield from timestamps.find_by_timestamp(log, timestamp, _Elsewhere(broker))
        # Nobody may read what lies beyond the end yet, so nobody is told of it.
        if found is not None and found.offset < end:
            answer.timestamp, answer.offset, answer.leader_epoch = found


class _Elsewhere:
    """Where batches are opened: not on the event loop, and not more of them than there is memory for."""

    def __init__(self, broker: Broker) -> None:
        self.run: Callable[..., Awaitable[Any]] = broker.run_in_thread
        self.reserve = broker.opened_memory.reserve
        self.release = broker.opened_memory.release
