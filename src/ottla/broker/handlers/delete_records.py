"""DeleteRecords v0-2. Moves a partition's first offset up to the one given; -1 means up to the high watermark.

Readers no longer see what is below; segments that lie wholly below go with the next clean-up. Refused for internal
topics and where the clean-up policy does not say `delete`.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import tell
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse

_NO_OFFSET = -1


def handle(broker: Broker, context: RequestContext, request: DeleteRecordsRequest) -> Steps[DeleteRecordsResponse]:
    by = context.requester
    topics = []
    for topic in request.topics:
        results = yield from each(topic.partitions, partial(_answer, broker, topic.name))
        firsts = [
            f"{result.partition_index}: {result.low_watermark}"
            for result in results
            if result.error_code == ErrorCode.NONE
        ]
        if firsts:
            tell("records deleted", by, topic=topic.name, first_offsets=", ".join(firsts))
        topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _answer(
    broker: Broker, topic: str, asked: DeleteRecordsRequest.DeleteRecordsPartition
) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
    result = DeleteRecordsResponse.DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=_NO_OFFSET
    )
    try:
        result.low_watermark = _delete(broker, topic, asked.partition_index, asked.offset)
    except ApiError as error:
        result.error_code = error.code
    return result


def _delete(broker: Broker, topic: str, index: int, offset: int) -> int:
    partition = broker.partitions.get(topic, index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.is_internal:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not partition.log.config.cleanup_delete:
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    return partition.log.delete_records(offset)
