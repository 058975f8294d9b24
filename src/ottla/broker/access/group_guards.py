"""Guards of the APIs of groups, their offsets, and where both are coordinated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ottla.broker.access import shapes
from ottla.broker.access.access import Asker
from ottla.broker.access.guarding import TOPIC_DENIED, Guard, Request, check
from ottla.broker.access.rules import DENIED, RULES
from ottla.broker.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.common.steps import Steps
from ottla.metadata.acls import Operation, ResourceType
from ottla.protocol import messages as m


def offset_commit(request: Request) -> Steps[Any]:
    message, by_id = request.message, request.version >= 10
    if not request.ask.may(Operation.READ, ResourceType.GROUP, message.group_id):
        lines = [shapes.committed_topic(topic, ErrorCode.GROUP_AUTHORIZATION_FAILED) for topic in message.topics]
        return m.OffsetCommitResponse(topics=lines)
    denied = yield from request.without_topics(Operation.READ, by_id=by_id)
    answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.committed_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def txn_offset_commit(request: Request) -> Steps[Any]:
    message = request.message
    for rule, name in zip(RULES["TxnOffsetCommit"], (message.transactional_id, message.group_id), strict=False):
        if not request.ask.may(rule.operation, rule.resource, name):
            lines = [shapes.txn_committed_topic(topic, DENIED[rule.resource]) for topic in message.topics]
            return m.TxnOffsetCommitResponse(topics=lines)
    denied = yield from request.without_topics(Operation.READ)
    if not message.topics and denied:
        answer = m.TxnOffsetCommitResponse(topics=[])
    else:
        answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.txn_committed_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def offset_delete(request: Request) -> Steps[Any]:
    check(request, RULES["OffsetDelete"][0])
    denied = yield from request.without_topics(Operation.READ)
    answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.offset_deleted_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def offset_fetch(request: Request) -> Steps[Any]:
    """Denied topics are asked for as the others are, and their lines made empty: so the answer keeps its form."""
    ask, message, image = request.ask, request.message, request.broker.image
    if request.version < 8:
        if not ask.may(Operation.DESCRIBE, ResourceType.GROUP, message.group_id):
            return shapes.offsets_refused(message, request.version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        named = message.topics is not None
        answer = yield from request.answer()
        answer.topics = list(_shown_offsets(ask, answer.topics, named=named, name_of=lambda topic: topic.name))
        return answer
    groups = dict.fromkeys(group.group_id for group in message.groups)
    refused = {group: None for group in groups if not ask.may(Operation.DESCRIBE, ResourceType.GROUP, group)}
    message.groups = [group for group in message.groups if group.group_id not in refused]
    named_groups = {group.group_id for group in message.groups if group.topics is not None}
    answer = yield from request.answer()

    def name_of(topic: Any) -> str:
        found = image.topics_by_id.get(TopicId(topic.topic_id)) if request.version >= 10 else None
        return topic.name if request.version < 10 else "" if found is None else found.name

    for group in answer.groups:
        group.topics = list(_shown_offsets(ask, group.topics, named=group.group_id in named_groups, name_of=name_of))
    line = m.OffsetFetchResponse.OffsetFetchResponseGroup
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    answer.groups = [*answer.groups, *(line(group_id=group, error_code=code) for group in refused)]
    return answer


def _shown_offsets(ask: Asker, topics: Any, *, named: bool, name_of: Callable[[Any], str]) -> Iterator[Any]:
    """Topics that were named and are denied are told so; others are left out."""
    for topic in topics:
        name = name_of(topic)
        if not name or ask.may_topic(Operation.DESCRIBE, name, tells=named):
            yield topic
        elif named:
            for partition in topic.partitions:
                partition.committed_offset, partition.committed_leader_epoch = -1, -1
                partition.metadata, partition.error_code = "", TOPIC_DENIED
            yield topic


def find_coordinator(request: Request) -> Steps[Any]:
    ask, message = request.ask, request.message
    kinds = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
    kind = kinds.get(message.key_type)
    if kind is None:
        return (yield from request.answer())
    if request.version < 4:
        if not ask.may(Operation.DESCRIBE, kind, message.key):
            raise ApiError(DENIED[kind])
        return (yield from request.answer())
    denied = {key: None for key in message.coordinator_keys if not ask.may(Operation.DESCRIBE, kind, key)}
    message.coordinator_keys = [key for key in message.coordinator_keys if key not in denied]
    answer = yield from request.answer()
    line = m.FindCoordinatorResponse.Coordinator
    refused = (line(key=key, node_id=-1, host="", port=-1, error_code=DENIED[kind]) for key in denied)
    answer.coordinators = [*answer.coordinators, *refused]
    return answer


def by_group(
    request_field: str, answer_field: str, operation: Operation, line: Any, *, tells_operations: bool
) -> Guard:
    def guard(request: Request) -> Steps[Any]:
        ask, groups = request.ask, getattr(request.message, request_field)
        denied = {group: None for group in groups if not ask.may(operation, ResourceType.GROUP, group)}
        setattr(request.message, request_field, [group for group in groups if group not in denied])
        answer = yield from request.answer()
        told = getattr(answer, answer_field)
        for group in told if tells_operations else ():
            if group.authorized_operations != NOT_ASKED:
                group.authorized_operations = ask.operations(ResourceType.GROUP, group.group_id, GROUP_OPERATIONS)
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        refused = (line(group_id=group, error_code=code) for group in denied)
        setattr(answer, answer_field, [*told, *refused])
        return answer

    return guard


def consumer_group_describe(request: Request) -> Steps[Any]:
    ask, line = request.ask, m.ConsumerGroupDescribeResponse.DescribedGroup
    answer = yield from by_group("group_ids", "groups", Operation.DESCRIBE, line, tells_operations=True)(request)
    for place, group in enumerate(answer.groups):
        names = {
            topic.topic_name
            for member in group.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        }
        if not all(ask.may_topic(Operation.DESCRIBE, name) for name in sorted(names)):
            answer.groups[place] = line(group_id=group.group_id, error_code=TOPIC_DENIED)
    return answer


def list_groups(request: Request) -> Steps[Any]:
    ask = request.ask
    answer = yield from request.answer()
    if not ask.may_cluster(Operation.DESCRIBE, tells=False):
        answer.groups = [
            group
            for group in answer.groups
            if ask.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, tells=False)
        ]
    return answer


def consumer_group_heartbeat(request: Request) -> Steps[Any]:
    check(request, RULES["ConsumerGroupHeartbeat"][0])
    names = request.message.subscribed_topic_names or ()
    if not all(request.ask.may_topic(Operation.DESCRIBE, name) for name in names):
        raise ApiError(TOPIC_DENIED)
    return (yield from request.answer())
