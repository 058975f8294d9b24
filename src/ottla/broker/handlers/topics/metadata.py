"""Metadata v0-13. Brokers, and topics with their partitions' leaders; creates missing topics where allowed.

A topic that is created on the way is complete in the same answer, so a producer needs no second round. All topics are
meant by a null list, in v0 by an empty one. Topics can be asked for by id from v12; then names are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ottla.broker.access.access import Asker
from ottla.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.broker.encoded_topics import Topic
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.steps import Steps, each
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.metadata.image import INTERNAL_TOPICS, ClusterImage, TopicImage, reachable
from ottla.metadata.topic_names import name_fault
from ottla.protocol.messages import MetadataRequest, MetadataResponse

# Topics that one request may bring into being; whoever wants more of them at once means CreateTopics.
_CREATED_MAX = 1000
_METADATA = 3


def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> Steps[bytearray]:
    version, topics = context.version, request.topics
    ask = None if broker.access is None else broker.access.of(context)
    response = _without_topics(broker, context, request)
    found: Sequence[TopicImage | Topic]
    if topics is None or (version == 0 and not topics):
        found = list(broker.image.topics.values())
        if ask is not None:
            shown = broker.image.topics.values()
            found = [topic for topic in shown if ask.may_topic(Operation.DESCRIBE, topic.name, tells=False)]
    elif by_id := [topic for topic in topics if topic.topic_id != ZERO_TOPIC_ID]:
        if version < 12:
            found = [_failed(topic.name or "", ErrorCode.INVALID_REQUEST) for topic in topics]
        else:
            found = yield from each(by_id, lambda topic: _by_id(broker.image, TopicId(topic.topic_id)))
            if ask is not None:
                found = [_described_by_id(ask, topic) for topic in found]
    elif any(topic.name is None for topic in topics):
        found = [_failed(topic.name or "", ErrorCode.INVALID_REQUEST) for topic in topics]
    else:
        names = list(dict.fromkeys(topic.name for topic in topics if topic.name is not None))
        missing = [name for name in names if name not in broker.image.topics]
        if missing and request.allow_auto_topic_creation and broker.config.auto_create_topics_enable:
            refused = () if ask is None else _not_to_be_created(ask, missing)
            errors = yield _create(broker, context.requester, [name for name in missing if name not in refused])
            errors |= dict.fromkeys(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            found = yield from each(names, partial(_created, broker, errors))
        else:
            found = yield from each(names, partial(_by_name, broker.image))
    if ask is not None:
        found = [_described(ask, topic) for topic in found]
    _count_errors(broker, found)
    encoded = broker.encoded_topics
    encoded.follow(broker.image.topics)
    with_operations = request.include_topic_authorized_operations
    if ask is None or not with_operations:
        return (yield from encoded.response(response, found, version, with_operations=with_operations))
    allowed = {
        topic.name or "": ask.operations(ResourceType.TOPIC, topic.name or "", TOPIC_OPERATIONS) for topic in found
    }
    return (yield from encoded.response(response, found, version, with_operations=True, allowed=allowed))


def _count_errors(broker: Broker, found: Sequence[TopicImage | Topic]) -> None:
    """Here, because what leaves is encoded, and known topics have no errors."""
    if broker.observer is None:
        return
    for topic in found:
        if not isinstance(topic, TopicImage) and topic.error_code:
            broker.observer.failed(_METADATA, topic.error_code)


def _described(ask: Asker, topic: TopicImage | Topic) -> TopicImage | Topic:
    """Whoever may not describe a topic does not learn whether it exists."""
    name = topic.name
    if name is None or ask.may_topic(Operation.DESCRIBE, name):
        return topic
    return MetadataResponse.MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _not_to_be_created(ask: Asker, missing: Sequence[str]) -> tuple[str, ...]:
    if ask.may_cluster(Operation.CREATE, tells=False):
        return tuple(name for name in missing if not ask.may_topic(Operation.DESCRIBE, name))
    return tuple(
        name
        for name in missing
        if not (ask.may_topic(Operation.DESCRIBE, name) and ask.may_topic(Operation.CREATE, name))
    )


def _without_topics(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    image = broker.image
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=node.id, host=host, port=port, rack=node.rack)
            for node, (host, port) in reachable(image, context.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller,
        cluster_authorized_operations=(
            _cluster_operations(broker, context) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _cluster_operations(broker: Broker, context: RequestContext) -> int:
    if broker.access is None:
        return CLUSTER_OPERATIONS
    ask = broker.access.of(context)
    if not ask.may_cluster(Operation.DESCRIBE, tells=False):
        return 0
    return ask.operations(ResourceType.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS)


def _described_by_id(ask: Asker, topic: TopicImage | Topic) -> TopicImage | Topic:
    if not isinstance(topic, TopicImage) or ask.may_topic(Operation.DESCRIBE, topic.name):
        return topic
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponse.MetadataResponseTopic(error_code=code, name=None, topic_id=topic.id)


async def _create(broker: Broker, by: Requester, missing: Sequence[str]) -> dict[str, ErrorCode]:
    """What could not be created, and why."""
    errors: dict[str, ErrorCode] = {}
    for name in missing[:_CREATED_MAX]:
        try:
            await broker.topics.auto_create(name, by)
        except ApiError as error:
            errors[name] = error.code
    return errors


def _created(broker: Broker, errors: Mapping[str, ErrorCode], name: str) -> TopicImage | Topic:
    return _failed(name, errors[name]) if name in errors else _by_name(broker.image, name)


def _by_name(image: ClusterImage, name: str) -> TopicImage | Topic:
    topic = image.topics.get(name)
    if topic is not None:
        return topic
    illegal = name_fault(name) is not None
    return _failed(name, ErrorCode.INVALID_TOPIC_EXCEPTION if illegal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _by_id(image: ClusterImage, topic_id: TopicId) -> TopicImage | Topic:
    topic = image.topics_by_id.get(topic_id)
    if topic is not None:
        return topic
    return MetadataResponse.MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)


def _failed(name: str, code: ErrorCode) -> Topic:
    return MetadataResponse.MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)
