"""DeleteTopics v1-6. By name, or by id from v6; the logs go with the topic, their files a little later.

Internal topics can be deleted, as in Kafka. `delete.topic.enable=false` refuses all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.chores.deadlines import in_time
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.broker.quotas.throttling import MutationQuota
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.steps import Steps, each
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

Result = DeleteTopicsResponse.DeletableTopicResult

# KIP-599: clients wait and try again.
_STRICT_QUOTA_SINCE = 5
_UNKNOWN_NAME = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
_UNKNOWN_ID = ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


class _Asked(NamedTuple):
    name: str | None
    topic_id: TopicId


class _Doomed(NamedTuple):
    """A topic that was there when it was asked for. The answer names it by both, and tells if it is gone by then."""

    asked: _Asked
    topic: TopicImage

    def result(self, error: ApiError | None) -> Result:
        return _result(_Asked(self.topic.name, self.topic.id), error)


def handle(broker: Broker, context: RequestContext, request: DeleteTopicsRequest) -> Steps[DeleteTopicsResponse]:
    version, by = context.version, context.requester
    if version >= 6:
        asked = [_Asked(topic.name, TopicId(topic.topic_id)) for topic in request.topics]
    else:
        asked = [_Asked(name, ZERO_TOPIC_ID) for name in request.topic_names]
    if not broker.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        refused = ApiError(code, "Topic deletion is disabled.")
        return DeleteTopicsResponse(responses=(yield from each(asked, lambda named: _result(named, refused))))
    results, doomed = yield from _sort_out(asked, broker.image)
    quota = MutationQuota(broker, context, strict_since=_STRICT_QUOTA_SINCE)
    for name, named in list(doomed.items()):
        yield None
        exceeded = quota.take(len(named.topic.partitions))
        if exceeded is not None:
            results.append(named.result(exceeded))
            del doomed[name]
    results += yield from _delete(broker, doomed, by, request.timeout_ms)
    return DeleteTopicsResponse(throttle_time_ms=quota.wait_ms, responses=results)


def _sort_out(asked: Sequence[_Asked], image: ClusterImage) -> Steps[tuple[list[Result], dict[str, _Doomed]]]:
    """Answers to what cannot be, and what is to be deleted by its name."""
    results: list[Result] = []
    doomed: dict[str, _Doomed] = {}
    for named, count in Counter(asked).items():
        yield None
        topic = image.topics.get(named.name) if named.name is not None else image.topics_by_id.get(named.topic_id)
        if named.name is None and named.topic_id == ZERO_TOPIC_ID:
            fault = ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        elif named.name is not None and named.topic_id != ZERO_TOPIC_ID:
            fault = ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        elif count > 1:
            what = "name" if named.name is not None else "id"
            fault = ApiError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
        elif topic is None:
            fault = _unknown(named)
        elif topic.name in doomed:
            fault = ApiError(
                ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
            )
        else:
            doomed[topic.name] = _Doomed(named, topic)
            continue
        results.append(_result(named, fault))
    return results, doomed


def _delete(broker: Broker, doomed: dict[str, _Doomed], by: Requester, timeout_ms: int) -> Steps[list[Result]]:
    if not doomed:
        return []
    topics = [named.topic for named in doomed.values()]
    try:
        outcomes = yield in_time(timeout_ms, lambda: broker.topics.delete(topics, by))
    except ApiError as error:
        failed = error
        return (yield from each(doomed.values(), lambda named: named.result(failed)))
    return (yield from each(zip(doomed.values(), outcomes, strict=True), _outcome))


def _outcome(deleted: tuple[_Doomed, TopicImage | ApiError]) -> Result:
    named, outcome = deleted
    return named.result(_unknown(named.asked) if isinstance(outcome, ApiError) else None)


def _unknown(asked: _Asked) -> ApiError:
    return _UNKNOWN_ID if asked.name is None else _UNKNOWN_NAME


def _result(asked: _Asked, error: ApiError | None) -> Result:
    return DeleteTopicsResponse.DeletableTopicResult(
        name=asked.name,
        topic_id=asked.topic_id,
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
    )
