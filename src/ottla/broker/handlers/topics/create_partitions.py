"""CreatePartitions v0-3. More partitions for a topic, at the end; their logs are there before the answer is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.broker.broker import Broker
from ottla.broker.chores.deadlines import in_time
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.broker.quotas.throttling import MutationQuota
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.controller.topic_plan import NewPartitions
from ottla.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse

Result = CreatePartitionsResponse.CreatePartitionsTopicResult
# KIP-599: clients wait and try again.
_STRICT_QUOTA_SINCE = 3


def handle(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> Steps[CreatePartitionsResponse]:
    by = context.requester
    counts = Counter(topic.name for topic in request.topics)
    duplicate = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name, count in counts.items() if count > 1]
    wanted = yield from each([topic for topic in request.topics if counts[topic.name] == 1], _wanted)
    quota = MutationQuota(broker, context, strict_since=_STRICT_QUOTA_SINCE)
    if not request.validate_only:
        wanted, refused = _within(quota, wanted, broker)
        results += refused
    if wanted:
        results += yield from _create(broker, wanted, request, by)
    return CreatePartitionsResponse(throttle_time_ms=quota.wait_ms, results=results)


def _within(
    quota: MutationQuota, wanted: list[NewPartitions], broker: Broker
) -> tuple[list[NewPartitions], list[Result]]:
    """Those that the quota allows, and the answers to the others."""
    allowed, refused = [], []
    for new in wanted:
        topic = broker.image.topics.get(new.topic)
        more = 0 if topic is None else new.total - len(topic.partitions)
        exceeded = quota.take(more) if more > 0 else None
        if exceeded is None:
            allowed.append(new)
        else:
            refused.append(_result(new.topic, exceeded))
    return allowed, refused


def _wanted(topic: CreatePartitionsRequest.CreatePartitionsTopic) -> NewPartitions:
    assignments = None if topic.assignments is None else [assignment.broker_ids for assignment in topic.assignments]
    return NewPartitions(topic.name, topic.count, assignments)


def _create(
    broker: Broker, wanted: list[NewPartitions], request: CreatePartitionsRequest, by: Requester
) -> Steps[list[Result]]:
    outcomes: Sequence[object]
    try:
        outcomes = yield in_time(
            request.timeout_ms,
            lambda: broker.topics.create_partitions(wanted, validate_only=request.validate_only, by=by),
        )
    except ApiError as error:
        outcomes = [error] * len(wanted)
    names = [request.topic for request in wanted]
    return (yield from each(zip(names, outcomes, strict=True), _outcome))


def _outcome(named: tuple[str, object]) -> Result:
    name, outcome = named
    return _result(name, outcome if isinstance(outcome, ApiError) else None)


def _result(name: str, error: ApiError | None) -> Result:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=name,
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
    )
