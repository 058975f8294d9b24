"""CreateTopics v2-7. All good topics of a request are created in one commit; each bad one gets its own error.

A topic's logs are there before the answer is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.broker.broker import Broker
from ottla.broker.chores.deadlines import in_time
from ottla.broker.configs.config_entries import Entry
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.broker.quotas.throttling import MutationQuota
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps, each
from ottla.controller.topic_plan import NewTopic
from ottla.metadata.image import INTERNAL_TOPICS, TopicImage
from ottla.protocol.messages import CreateTopicsRequest, CreateTopicsResponse

Result = CreateTopicsResponse.CreatableTopicResult
Config = CreateTopicsResponse.CreatableTopicConfigs
# By a topic's overrides.
Described = dict[tuple[tuple[str, str], ...], list[Config]]

# KIP-525: the answer tells the settings of the new topic.
FIRST_VERSION_WITH_CONFIGS = 5
# KIP-599: clients wait and try again.
STRICT_QUOTA_SINCE = 6


def handle(broker: Broker, context: RequestContext, request: CreateTopicsRequest) -> Steps[CreateTopicsResponse]:
    by, with_configs = context.requester, context.version >= FIRST_VERSION_WITH_CONFIGS
    counts = Counter(topic.name for topic in request.topics)
    results = [
        _failed(name, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        for name, count in counts.items()
        if count > 1
    ]
    wanted = [topic for topic in request.topics if counts[topic.name] == 1]
    quota = MutationQuota(broker, context, strict_since=STRICT_QUOTA_SINCE)
    if not request.validate_only:
        wanted, refused = _within(quota, wanted, broker)
        results += refused
    results += yield from _create(broker, wanted, request, by, with_configs)
    return CreateTopicsResponse(throttle_time_ms=quota.wait_ms, topics=results)


def _within(
    quota: MutationQuota, wanted: list[CreateTopicsRequest.CreatableTopic], broker: Broker
) -> tuple[list[CreateTopicsRequest.CreatableTopic], list[Result]]:
    """Those that the quota allows, and the answers to the others. What brokers need counts for nobody."""
    allowed, refused = [], []
    for topic in wanted:
        count = len(topic.assignments) or max(topic.num_partitions, 0) or broker.config.num_partitions
        is_counted = topic.name not in INTERNAL_TOPICS and topic.name not in broker.image.topics
        exceeded = quota.take(count) if is_counted else None
        if exceeded is None:
            allowed.append(topic)
        else:
            refused.append(_failed(topic.name, exceeded))
    return allowed, refused


def _create(
    broker: Broker,
    wanted: list[CreateTopicsRequest.CreatableTopic],
    request: CreateTopicsRequest,
    by: Requester,
    with_configs: bool,
) -> Steps[list[Result]]:
    if not wanted:
        return []
    topics = yield from each(wanted, _new_topic)
    try:
        outcomes = yield in_time(
            request.timeout_ms, lambda: broker.topics.create(topics, validate_only=request.validate_only, by=by)
        )
    except ApiError as error:
        outcomes = [error] * len(wanted)
    described: Described = {}

    def result(named: tuple[str, TopicImage | ApiError]) -> Result:
        name, outcome = named
        if isinstance(outcome, ApiError):
            return _failed(name, outcome)
        return _created(outcome, _configs(broker, outcome, described) if with_configs else ())

    return (yield from each(zip((topic.name for topic in wanted), outcomes, strict=True), result))


def _new_topic(topic: CreateTopicsRequest.CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def _created(topic: TopicImage, configs: Sequence[Config]) -> Result:
    return CreateTopicsResponse.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )


def _configs(broker: Broker, topic: TopicImage, described: Described) -> list[Config]:
    """Topics of one request mostly have the same settings: each set is described once."""
    key = tuple(topic.configs.items())
    if key not in described:
        described[key] = [_config(entry) for entry in broker.configs.describe_new_topic(topic.configs)]
    return described[key]


def _config(entry: Entry) -> Config:
    return CreateTopicsResponse.CreatableTopicConfigs(
        name=entry.name,
        value=entry.shown(entry.text),
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
    )


def _failed(name: str, error: ApiError) -> Result:
    return CreateTopicsResponse.CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message, configs=()
    )
