"""DeleteRecords v0-2. Moves a partition's first offset up to the one given; -1 means up to the high watermark.

Readers no longer see what is below; segments that lie wholly below go with the next clean-up. Refused for internal
topics and where the clean-up policy does not say `delete`. The answer waits until all live replicas have done the same,
at most as long as the request says.
"""

from __future__ import annotations

import asyncio
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import tell
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse

_NO_OFFSET = -1

Result = DeleteRecordsResponse.DeleteRecordsPartitionResult
Waiting = list[tuple[Result, asyncio.Future[int]]]


def handle(broker: Broker, context: RequestContext, request: DeleteRecordsRequest) -> Steps[DeleteRecordsResponse]:
    by = context.requester
    topics = []
    waiting: Waiting = []
    for topic in request.topics:
        results = yield from each(topic.partitions, partial(_answer, broker, topic.name, waiting))
        topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=results))
    if waiting:
        yield _all_deleted(waiting, request.timeout_ms)
    for answered in topics:
        firsts = [
            f"{result.partition_index}: {result.low_watermark}"
            for result in answered.partitions
            if result.error_code == ErrorCode.NONE
        ]
        if firsts:
            tell("records deleted", by, topic=answered.name, first_offsets=", ".join(firsts))
    return DeleteRecordsResponse(topics=topics)


async def _all_deleted(waiting: Waiting, timeout_ms: int) -> None:
    await asyncio.wait([deleted for _, deleted in waiting], timeout=max(0, timeout_ms) / 1000)
    for result, deleted in waiting:
        if not deleted.done():
            deleted.cancel()
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            continue
        try:
            result.low_watermark = deleted.result()
        except ApiError as error:
            result.error_code = error.code


def _answer(broker: Broker, topic: str, waiting: Waiting, asked: DeleteRecordsRequest.DeleteRecordsPartition) -> Result:
    result = DeleteRecordsResponse.DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=_NO_OFFSET
    )
    try:
        deleted = _delete(broker, topic, asked.partition_index, asked.offset)
        if isinstance(deleted, asyncio.Future):
            waiting.append((result, deleted))
        else:
            result.low_watermark = deleted
    except ApiError as error:
        result.error_code = error.code
    return result


def _delete(broker: Broker, topic: str, index: int, offset: int) -> int | asyncio.Future[int]:
    partition = broker.partitions.get(topic, index)
    if partition is None:
        raise ApiError(broker.partitions.error_for(topic, index))
    if partition.is_internal:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not partition.log.config.cleanup_delete:
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    return partition.delete_records(offset, lambda replica: replica in broker.image.brokers)
