"""DeleteRecords v0-2. Moves a partition's first offset up to the one given; -1 means up to the high watermark.

Readers no longer see what is below; segments that lie wholly below go with the next clean-up. Refused for internal
topics and where the clean-up policy does not say `delete`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.change_log import tell
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_NO_OFFSET = -1


def handle(broker: Broker, context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(topics=[_topic(broker, context, topic) for topic in request.topics])


def _topic(
    broker: Broker, context: RequestContext, topic: DeleteRecordsRequest.DeleteRecordsTopic
) -> DeleteRecordsResponse.DeleteRecordsTopicResult:
    results = [_answer(broker, topic.name, one.partition_index, one.offset) for one in topic.partitions]
    firsts = [f"{one.partition_index}: {one.low_watermark}" for one in results if one.error_code == ErrorCode.NONE]
    if firsts:
        tell("records deleted", context.requester, topic=topic.name, first_offsets=", ".join(firsts))
    return DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=results)


def _answer(broker: Broker, topic: str, index: int, offset: int) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
    result = DeleteRecordsResponse.DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_OFFSET)
    try:
        result.low_watermark = _delete(broker, topic, index, offset)
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
