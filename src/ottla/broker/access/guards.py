"""Stands before the handlers of a broker with an authorizer: what may not be done does not reach them.

A guard asks for what `rules.py` says, hands the rest of the request to the handler, and puts what was denied back into
the answer, with Kafka's error, where Kafka puts it. `guarded(name, handle)` is used like the handler itself. Produce,
Fetch and Metadata, which answer in bytes, ask for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from inspect import isawaitable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from ottla.broker.access import shapes
from ottla.broker.access.access import Asker
from ottla.broker.access.rules import DENIED, RULES, Rule
from ottla.broker.authorized_operations import CLUSTER_OPERATIONS, GROUP_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.common.steps import Steps
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol import messages as m

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

Handle = Callable[["Broker", RequestContext, Any], Any]
Guard = Callable[["Request"], Steps[Any]]
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOT_AUTHORIZED = "Authorization failed."
# By the wire numbers of config resources.
_CONFIG_RESOURCES = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
# Where a request names the one group or transactional id that it is about.
_NAMED_BY = {ResourceType.GROUP: "group_id", ResourceType.TRANSACTIONAL_ID: "transactional_id"}
_UP_TO_V3, _LOG_DIRS_ERROR_SINCE = 3, 3


class Request:
    """One request on its way through a guard."""

    __slots__ = ("_handle", "ask", "broker", "context", "message", "version")

    def __init__(self, handle: Handle, broker: Broker, context: RequestContext, message: Any) -> None:
        assert broker.access is not None
        self._handle = handle
        self.broker = broker
        self.context = copy(context)  # the connection's, and ours only until we are interrupted
        self.message = message
        self.version = context.version
        self.ask: Asker = broker.access.of(context)

    def answer(self) -> Steps[Any]:
        """What the handler makes of the message as it is now."""
        answer = self._handle(self.broker, self.context, self.message)
        if isinstance(answer, GeneratorType):
            return (yield from answer)
        if isawaitable(answer):
            return (yield answer)
        return answer

    def without_topics(self, operation: Operation, field: str = "name", *, by_id: bool = False) -> Steps[list[Any]]:
        """The topics of the message for which it is not allowed; the others stay."""
        allowed: list[Any] = []
        denied: list[Any] = []
        for topic in self.message.topics:
            key = bytes(topic.topic_id) if by_id else getattr(topic, field).encode()
            (allowed if self.ask.may_topic_key(operation, key, by_id=by_id) else denied).append(topic)
            yield None
        self.message.topics = allowed
        return denied


def guarded(name: str, handle: Handle) -> Handle:
    """The handler of an API, asked only for what is allowed."""
    rules, own_guard = RULES[name], _GUARDS.get(name)
    if not rules and own_guard is None:
        return handle
    guard = own_guard or partial(_as_a_whole, rules)
    return lambda broker, context, message: guard(Request(handle, broker, context, message))


# --- the request as a whole


def _as_a_whole(rules: tuple[Rule, ...], request: Request) -> Steps[Any]:
    for rule in rules:
        _check(request, rule)
    return (yield from request.answer())


def _check(request: Request, rule: Rule) -> None:
    """Raises ApiError, which the router answers with."""
    field = _NAMED_BY.get(rule.resource)
    name: str = CLUSTER_NAME if field is None else getattr(request.message, field)
    if not request.ask.may(rule.operation, rule.resource, name):
        raise ApiError(DENIED[rule.resource], _NOT_AUTHORIZED)


def _whole_or(refused: Callable[[Any, ErrorCode], Any]) -> Guard:
    """For answers that have no error code of their own: `refused` has another place for it."""

    def guard(request: Request) -> Steps[Any]:
        name = type(request.message).__name__.removesuffix("Request")
        rule = RULES[name][0]
        if not request.ask.may_cluster(rule.operation):
            return refused(request.message, DENIED[rule.resource])
        return (yield from request.answer())

    return guard


def _write_txn_markers(request: Request) -> Steps[Any]:
    ask = request.ask
    if not ask.may_cluster(Operation.ALTER, tells=False) and not ask.may_cluster(Operation.CLUSTER_ACTION):
        return shapes.write_txn_markers(request.message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return (yield from request.answer())


def _describe_log_dirs(request: Request) -> Steps[Any]:
    if not request.ask.may_cluster(Operation.DESCRIBE):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if request.version >= _LOG_DIRS_ERROR_SINCE else ErrorCode.NONE
        return m.DescribeLogDirsResponse(error_code=code, results=[])
    return (yield from request.answer())


def _init_producer_id(request: Request) -> Steps[Any]:
    ask, name = request.ask, request.message.transactional_id
    if name is not None:
        if not ask.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not ask.may_cluster(Operation.IDEMPOTENT_WRITE, tells=False) and not ask.may_on_any(
        Operation.WRITE, ResourceType.TOPIC
    ):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return (yield from request.answer())


def _consumer_group_heartbeat(request: Request) -> Steps[Any]:
    _check(request, RULES["ConsumerGroupHeartbeat"][0])
    names = request.message.subscribed_topic_names or ()
    if not all(request.ask.may_topic(Operation.DESCRIBE, name) for name in names):
        raise ApiError(TOPIC_DENIED)
    return (yield from request.answer())


# --- topic by topic


def _by_topic(operation: Operation, refused: Callable[[Any, ErrorCode], Any]) -> Guard:
    """`refused` makes the line of the answer for a topic that is denied."""

    def guard(request: Request) -> Steps[Any]:
        denied = yield from request.without_topics(operation)
        answer = yield from request.answer()
        answer.topics = [*answer.topics, *(refused(topic, TOPIC_DENIED) for topic in denied)]
        return answer

    return guard


def _offset_for_leader_epoch(request: Request) -> Steps[Any]:
    if request.ask.may_cluster(Operation.CLUSTER_ACTION, tells=False):
        return (yield from request.answer())
    denied = yield from request.without_topics(Operation.DESCRIBE, "topic")
    answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.epoch_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def _create_topics(request: Request) -> Steps[Any]:
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
    answer.topics = [*answer.topics, *(shapes.created_topic(name, TOPIC_DENIED, _NOT_AUTHORIZED) for name in denied)]
    return answer


def _delete_topics(request: Request) -> Steps[Any]:
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


def _create_partitions(request: Request) -> Steps[Any]:
    denied = yield from request.without_topics(Operation.ALTER)
    answer = yield from request.answer()
    result = m.CreatePartitionsResponse.CreatePartitionsTopicResult
    answer.results = [*answer.results, *(result(name=topic.name, error_code=TOPIC_DENIED) for topic in denied)]
    return answer


def _describe_topic_partitions(request: Request) -> Steps[Any]:
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


# --- groups and offsets


def _offset_commit(request: Request) -> Steps[Any]:
    message, by_id = request.message, request.version >= 10
    if not request.ask.may(Operation.READ, ResourceType.GROUP, message.group_id):
        lines = [shapes.committed_topic(topic, ErrorCode.GROUP_AUTHORIZATION_FAILED) for topic in message.topics]
        return m.OffsetCommitResponse(topics=lines)
    denied = yield from request.without_topics(Operation.READ, by_id=by_id)
    answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.committed_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def _txn_offset_commit(request: Request) -> Steps[Any]:
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


def _offset_delete(request: Request) -> Steps[Any]:
    _check(request, RULES["OffsetDelete"][0])
    denied = yield from request.without_topics(Operation.READ)
    answer = yield from request.answer()
    answer.topics = [*answer.topics, *(shapes.offset_deleted_topic(topic, TOPIC_DENIED) for topic in denied)]
    return answer


def _offset_fetch(request: Request) -> Steps[Any]:
    """Denied topics are asked for as the others are, and their lines made empty: so the answer keeps its form."""
    ask, message, image = request.ask, request.message, request.broker.image
    if request.version < 8:
        if not ask.may(Operation.DESCRIBE, ResourceType.GROUP, message.group_id):
            return shapes.offsets_refused(message, request.version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        named = message.topics is not None
        answer = yield from request.answer()
        answer.topics = list(_shown_offsets(ask, answer.topics, named=named, name_of=lambda topic: topic.name))
        return answer
    groups = dict.fromkeys(one.group_id for one in message.groups)
    refused = {group: None for group in groups if not ask.may(Operation.DESCRIBE, ResourceType.GROUP, group)}
    message.groups = [one for one in message.groups if one.group_id not in refused]
    named_groups = {one.group_id for one in message.groups if one.topics is not None}
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


def _find_coordinator(request: Request) -> Steps[Any]:
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


def _by_group(request_field: str, answer_field: str, operation: Operation, line: Any) -> Guard:
    def guard(request: Request) -> Steps[Any]:
        ask, groups = request.ask, getattr(request.message, request_field)
        denied = {group: None for group in groups if not ask.may(operation, ResourceType.GROUP, group)}
        setattr(request.message, request_field, [group for group in groups if group not in denied])
        answer = yield from request.answer()
        told = getattr(answer, answer_field)
        for group in told:
            if getattr(group, "authorized_operations", NOT_ASKED) != NOT_ASKED:
                group.authorized_operations = ask.operations(ResourceType.GROUP, group.group_id, GROUP_OPERATIONS)
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        refused = (line(group_id=group, error_code=code) for group in denied)
        setattr(answer, answer_field, [*told, *refused])
        return answer

    return guard


def _consumer_group_describe(request: Request) -> Steps[Any]:
    ask, line = request.ask, m.ConsumerGroupDescribeResponse.DescribedGroup
    answer = yield from _by_group("group_ids", "groups", Operation.DESCRIBE, line)(request)
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


def _list_groups(request: Request) -> Steps[Any]:
    ask = request.ask
    answer = yield from request.answer()
    if not ask.may_cluster(Operation.DESCRIBE, tells=False):
        answer.groups = [
            one for one in answer.groups if ask.may(Operation.DESCRIBE, ResourceType.GROUP, one.group_id, tells=False)
        ]
    return answer


# --- transactions


def _add_partitions_to_txn(request: Request) -> Steps[Any]:
    ask, message = request.ask, request.message
    if request.version > _UP_TO_V3:
        if not ask.may_cluster(Operation.CLUSTER_ACTION):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return (yield from request.answer())
    topics, line = message.v3_and_below_topics, shapes.added_topic
    if not ask.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.v3_and_below_transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[line(topic, code) for topic in topics])
    denied = {topic.name for topic in topics if not ask.may_topic(Operation.WRITE, topic.name)}
    if denied:  # all are added, or none
        codes = {True: TOPIC_DENIED, False: ErrorCode.OPERATION_NOT_ATTEMPTED}
        results = [line(topic, codes[topic.name in denied]) for topic in topics]
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    return (yield from request.answer())


def _describe_transactions(request: Request) -> Steps[Any]:
    ask, message, kind = request.ask, request.message, ResourceType.TRANSACTIONAL_ID
    denied = {name: None for name in message.transactional_ids if not ask.may(Operation.DESCRIBE, kind, name)}
    message.transactional_ids = [name for name in message.transactional_ids if name not in denied]
    answer = yield from request.answer()
    for state in answer.transaction_states:
        state.topics = [one for one in state.topics if ask.may_topic(Operation.DESCRIBE, one.topic, tells=False)]
    line = m.DescribeTransactionsResponse.TransactionState
    refused = [line(transactional_id=name, error_code=DENIED[kind]) for name in denied]
    answer.transaction_states = [*answer.transaction_states, *refused]
    return answer


def _list_transactions(request: Request) -> Steps[Any]:
    ask, kind = request.ask, ResourceType.TRANSACTIONAL_ID
    answer = yield from request.answer()
    answer.transaction_states = [
        one for one in answer.transaction_states if ask.may(Operation.DESCRIBE, kind, one.transactional_id, tells=False)
    ]
    return answer


# --- configs and the cluster


def _configs(operation: Operation, answer_field: str, line: Any) -> Guard:
    def guard(request: Request) -> Steps[Any]:
        allowed: list[Any] = []
        denied: list[Any] = []
        for resource in request.message.resources:
            kind = _CONFIG_RESOURCES.get(resource.resource_type, ResourceType.CLUSTER)
            name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
            (allowed if request.ask.may(operation, kind, name) else denied).append((resource, kind))
        request.message.resources = [resource for resource, _ in allowed]
        answer = yield from request.answer()
        refused = (
            line(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=DENIED[kind],
                error_message=_NOT_AUTHORIZED,
            )
            for resource, kind in denied
        )
        setattr(answer, answer_field, [*getattr(answer, answer_field), *refused])
        return answer

    return guard


def _describe_cluster(request: Request) -> Steps[Any]:
    answer = yield from request.answer()
    if answer.cluster_authorized_operations != NOT_ASKED:
        answer.cluster_authorized_operations = cluster_operations(request.ask)
    return answer


def cluster_operations(ask: Asker) -> int:
    if not ask.may_cluster(Operation.DESCRIBE, tells=False):
        return 0
    return ask.operations(ResourceType.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS)


_GUARDS: dict[str, Guard] = {
    "AddPartitionsToTxn": _add_partitions_to_txn,
    "AlterClientQuotas": _whole_or(shapes.alter_client_quotas),
    "AlterConfigs": _configs(Operation.ALTER_CONFIGS, "responses", m.AlterConfigsResponse.AlterConfigsResourceResponse),
    "AlterReplicaLogDirs": _whole_or(shapes.alter_replica_log_dirs),
    "AlterUserScramCredentials": _whole_or(shapes.alter_user_scram_credentials),
    "ConsumerGroupDescribe": _consumer_group_describe,
    "ConsumerGroupHeartbeat": _consumer_group_heartbeat,
    "CreateAcls": _whole_or(shapes.create_acls),
    "CreatePartitions": _create_partitions,
    "CreateTopics": _create_topics,
    "DeleteAcls": _whole_or(shapes.delete_acls),
    "DeleteGroups": _by_group("groups_names", "results", Operation.DELETE, m.DeleteGroupsResponse.DeletableGroupResult),
    "DeleteRecords": _by_topic(Operation.DELETE, shapes.deleted_records_topic),
    "DeleteTopics": _delete_topics,
    "DescribeCluster": _describe_cluster,
    "DescribeConfigs": _configs(Operation.DESCRIBE_CONFIGS, "results", m.DescribeConfigsResponse.DescribeConfigsResult),
    "DescribeGroups": _by_group("groups", "groups", Operation.DESCRIBE, m.DescribeGroupsResponse.DescribedGroup),
    "DescribeLogDirs": _describe_log_dirs,
    "DescribeProducers": _by_topic(Operation.READ, shapes.producers_topic),
    "DescribeTopicPartitions": _describe_topic_partitions,
    "DescribeUserScramCredentials": _whole_or(shapes.describe_user_scram_credentials),
    "DescribeTransactions": _describe_transactions,
    "FindCoordinator": _find_coordinator,
    "IncrementalAlterConfigs": _configs(
        Operation.ALTER_CONFIGS, "responses", m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    ),
    "InitProducerId": _init_producer_id,
    "ListGroups": _list_groups,
    "ListOffsets": _by_topic(Operation.DESCRIBE, shapes.list_offsets_topic),
    "ListTransactions": _list_transactions,
    "OffsetCommit": _offset_commit,
    "OffsetDelete": _offset_delete,
    "OffsetFetch": _offset_fetch,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "TxnOffsetCommit": _txn_offset_commit,
    "WriteTxnMarkers": _write_txn_markers,
}
