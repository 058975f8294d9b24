"""OffsetForLeaderEpoch v2-4. Where a leader epoch ended: how a client learns that its position was truncated away.

The answer is the largest epoch that is not above the one asked for, and its end (KIP-101, KIP-279).
"""

from __future__ import annotations

from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.partitions.epoch_fence import epoch_error
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

Asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
Found = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    topics = []
    for topic in request.topics:
        found = yield from each(topic.partitions, partial(_find, broker, topic.topic))
        topics.append(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=found))
    return OffsetForLeaderEpochResponse(topics=topics)


def _find(broker: Broker, topic: str, asked: Asked) -> Found:
    result = OffsetForLeaderEpochResponse.EpochEndOffset(partition=asked.partition)
    partition = broker.partitions.get(topic, asked.partition)
    if partition is None:
        result.error_code = broker.partitions.error_for(topic, asked.partition)
        return result
    result.error_code = epoch_error(partition, asked.current_leader_epoch)
    if result.error_code == ErrorCode.NONE:
        log = partition.log
        found = log.leader_epochs.end_offset_for(asked.leader_epoch, log.log_end_offset)
        result.leader_epoch, result.end_offset = found
    return result
