"""Stands before the handlers of a broker with an authorizer: what may not be done does not reach them.

A guard asks for what `rules.py` says, hands the rest of the request to the handler, and puts what was denied back into
the answer, with Kafka's error, where Kafka puts it. `guarded(name, handle)` is used like the handler itself. Produce,
Fetch and Metadata, which answer in bytes, ask for themselves; so do CreateDelegationToken and DescribeDelegationToken.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ottla.broker.access import group_guards as groups
from ottla.broker.access import shapes
from ottla.broker.access import topic_guards as topics
from ottla.broker.access import transaction_guards as transactions
from ottla.broker.access.access import Asker
from ottla.broker.access.guarding import NOT_AUTHORIZED, Guard, Handle, Request, as_a_whole, whole_or
from ottla.broker.access.rules import DENIED, RULES
from ottla.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol import messages as m

# By the wire numbers of config resources.
_CONFIG_RESOURCES = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
_LOG_DIRS_ERROR_SINCE = 3


def guarded(name: str, handle: Handle) -> Handle:
    """The handler of an API, asked only for what is allowed."""
    rules, own_guard = RULES[name], _GUARDS.get(name)
    if not rules and own_guard is None:
        return handle
    guard = own_guard or partial(as_a_whole, rules)
    return lambda broker, context, message: guard(Request(handle, broker, context, message))


# --- configs and the cluster


def _describe_log_dirs(request: Request) -> Steps[Any]:
    if not request.ask.may_cluster(Operation.DESCRIBE):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if request.version >= _LOG_DIRS_ERROR_SINCE else ErrorCode.NONE
        return m.DescribeLogDirsResponse(error_code=code, results=[])
    return (yield from request.answer())


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
                error_message=NOT_AUTHORIZED,
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
    "AddPartitionsToTxn": transactions.add_partitions_to_txn,
    "AlterClientQuotas": whole_or(shapes.alter_client_quotas),
    "AlterConfigs": _configs(Operation.ALTER_CONFIGS, "responses", m.AlterConfigsResponse.AlterConfigsResourceResponse),
    "AlterReplicaLogDirs": whole_or(shapes.alter_replica_log_dirs),
    "AlterUserScramCredentials": whole_or(shapes.alter_user_scram_credentials),
    "ConsumerGroupDescribe": groups.consumer_group_describe,
    "ConsumerGroupHeartbeat": groups.consumer_group_heartbeat,
    "CreateAcls": whole_or(shapes.create_acls),
    "CreateDelegationToken": Request.answer,  # asks by itself
    "CreatePartitions": topics.create_partitions,
    "CreateTopics": topics.create_topics,
    "DeleteAcls": whole_or(shapes.delete_acls),
    "DeleteGroups": groups.by_group(
        "groups_names", "results", Operation.DELETE, m.DeleteGroupsResponse.DeletableGroupResult, tells_operations=False
    ),
    "DeleteRecords": topics.by_topic(Operation.DELETE, shapes.deleted_records_topic),
    "DeleteTopics": topics.delete_topics,
    "DescribeCluster": _describe_cluster,
    "DescribeConfigs": _configs(Operation.DESCRIBE_CONFIGS, "results", m.DescribeConfigsResponse.DescribeConfigsResult),
    "DescribeDelegationToken": Request.answer,  # too
    "DescribeGroups": groups.by_group(
        "groups", "groups", Operation.DESCRIBE, m.DescribeGroupsResponse.DescribedGroup, tells_operations=True
    ),
    "DescribeLogDirs": _describe_log_dirs,
    "DescribeProducers": topics.by_topic(Operation.READ, shapes.producers_topic),
    "DescribeTopicPartitions": topics.describe_topic_partitions,
    "DescribeUserScramCredentials": whole_or(shapes.describe_user_scram_credentials),
    "DescribeTransactions": transactions.describe_transactions,
    "FindCoordinator": groups.find_coordinator,
    "IncrementalAlterConfigs": _configs(
        Operation.ALTER_CONFIGS, "responses", m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    ),
    "InitProducerId": transactions.init_producer_id,
    "ListGroups": groups.list_groups,
    "ListOffsets": topics.by_topic(Operation.DESCRIBE, shapes.list_offsets_topic),
    "ListTransactions": transactions.list_transactions,
    "OffsetCommit": groups.offset_commit,
    "OffsetDelete": groups.offset_delete,
    "OffsetFetch": groups.offset_fetch,
    "OffsetForLeaderEpoch": topics.offset_for_leader_epoch,
    "TxnOffsetCommit": groups.txn_offset_commit,
    "WriteTxnMarkers": transactions.write_txn_markers,
}
