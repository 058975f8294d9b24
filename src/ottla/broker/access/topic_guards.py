"""Guards of APIs that are allowed topic by topic: the others are answered, and the denied ones beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.access import shapes
from ottla.broker.access.guarding import NOT_AUTHORIZED, TOPIC_DENIED, Guard, Request
from ottla.broker.authorized_operations import TOPIC_OPERATIONS
from ottla.common.errors import ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.steps import Steps
from ottla.metadata.acls import Operation, ResourceType
from ottla.protocol import messages as m


def by_topic(operation: Operation, refused: Callable[[Any, ErrorCode], Any]) -> Guard:
    """`refused` makes the line of the answer for a topic that is denied."""

    def guard(request: Request) -> Steps[Any]:
        denied = yield from request.without_topics(operation)
        answer = yield from request.answer()
        answer.topics = [*answer.topics, *(refused(topic, TOPIC_DENIED) for topic in denied)]
        return answer

    return guard


def offset_for_leader_epoch(request: Request) -> Steps[Any]:
    if request.ask.may_cluster(Operation.CLUSTER_ACTION, tells=False):
        return (yield from request.answer())
    denied = yield from request.without_topics(Operation.DESCRIBE, "topic")
    answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.epoch_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def create_topics(request: Request) -> Steps[Any]:
    ask, message = request.ask, request.message
    may_all = ask.may_cluster(Operation.CREATE, tells=False)
    names = dict.fromkeys(topic.name for topic in message.topics)
    denied = {} if may_all else {name: None for name in names if not ask.may_topic(Operation.CREATE, name)}
    message.topics = [topic for topic in message.topics if topic.name not in denied]
    answer = yield from request.answer()
    for topic in answer.topics:
        if topic.error_code == ErrorCode.NONE and not ask.may_topic(
            Operation.DESCRIBE_CONFIGS, topic.name, tells=False
        ):
            topic.topic_config_error_code, topic.configs = TOPIC_DENIED, ()
            topic.num_partitions = topic.replication_factor = -1
    answer.topics = [*answer.topics, *(shapes.created_topic(name, TOPIC_DENIED, NOT_AUTHORIZED) for name in denied)]
    return answer


def delete_topics(request: Request) -> Steps[Any]:
    ask, message, image = request.ask, request.message, request.broker.image
    denied = []
    if request.version < 6:
        refused = {name: None for name in message.topic_names if not ask.may_topic(Operation.DELETE, name)}
        message.topic_names = [name for name in message.topic_names if name not in refused]
        denied = [shapes.deleted_topic(name, ZERO_TOPIC_ID, TOPIC_DENIED) for name in refused]
    else:
        allowed = []
        for topic in message.topics:
            known = image.topics_by_id.get(TopicId(topic.topic_id)) if topic.name is None else None
            name = topic.name if topic.name is not None else None if known is None else known.name
            if name is None or ask.may_topic(Operation.DELETE, name):
                allowed.append(topic)
                continue
            # Who may not even describe a topic does not learn its name by its id.
            told = name if topic.name is not None or ask.may_topic(Operation.DESCRIBE, name, tells=False) else None
            denied.append(shapes.deleted_topic(told, topic.topic_id, TOPIC_DENIED))
        message.topics = allowed
    answer = yield from request.answer()
    answer.responses = [*answer.responses, *denied]
    return answer


def create_partitions(request: Request) -> Steps[Any]:
    denied = yield from request.without_topics(Operation.ALTER)
    answer = yield from request.answer()
    result = m.CreatePartitionsResponse.CreatePartitionsTopicResult
    answer.results = [*answer.results, *(result(name=topic.name, error_code=TOPIC_DENIED) for topic in denied)]
    return answer


def describe_topic_partitions(request: Request) -> Steps[Any]:
    ask, message = request.ask, request.message
    wanted = m.DescribeTopicPartitionsRequest.TopicRequest
    denied = []
    if message.topics:
        denied = yield from request.without_topics(Operation.DESCRIBE)
    else:
        names = [name for name in request.broker.image.topics if ask.may_topic(Operation.DESCRIBE, name, tells=False)]
        message.topics = [wanted(name=name) for name in names]
    if not message.topics:  # else all would be meant
        answer = m.DescribeTopicPartitionsResponse(topics=[])
    else:
        answer = yield from request.answer()
    for topic in answer.topics:
        topic.topic_authorized_operations = ask.operations(ResourceType.TOPIC, topic.name or "", TOPIC_OPERATIONS)
    line = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    answer.topics = [*answer.topics, *(line(name=topic.name, error_code=TOPIC_DENIED) for topic in denied)]
    return answer
