"""CreatePartitions v0-3. More partitions for a topic, at the end; their logs are there before the answer is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.change_log import Requester
from ottla.broker.context import RequestContext
from ottla.broker.deadlines import in_time
from ottla.broker.topic_plan import NewPartitions
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

    Result = CreatePartitionsResponse.CreatePartitionsTopicResult


async def handle(broker: Broker, context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    counts = Counter(topic.name for topic in request.topics)
    duplicate = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name, count in counts.items() if count > 1]
    wanted = [
        NewPartitions(
            one.name,
            one.count,
            None if one.assignments is None else [each.broker_ids for each in one.assignments],
        )
        for one in request.topics
        if counts[one.name] == 1
    ]
    if wanted:
        results += await _create(broker, wanted, request, context.requester)
    return CreatePartitionsResponse(results=results)


async def _create(
    broker: Broker, wanted: list[NewPartitions], request: CreatePartitionsRequest, by: Requester
) -> list[Result]:
    try:
        outcomes = await in_time(
            request.timeout_ms,
            lambda: broker.topics.create_partitions(wanted, validate_only=request.validate_only, by=by),
        )
    except ApiError as error:
        return [_result(one.topic, error) for one in wanted]
    return [
        _result(one.topic, outcome if isinstance(outcome, ApiError) else None)
        for one, outcome in zip(wanted, outcomes, strict=True)
    ]


def _result(name: str, error: ApiError | None) -> Result:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=name,
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
    )
