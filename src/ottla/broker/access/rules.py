"""What each API asks the authorizer for: the table, as data. `guards.py` goes by it, and so does docs/security-apis.md.

Rules and errors are those of Kafka's KafkaApis and ControllerApis. A rule without a function of its own in `guards.py`
is for the request as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.common.errors import ErrorCode
from ottla.metadata.acls import Operation, ResourceType

O, R, E = Operation, ResourceType, ErrorCode  # noqa: E741 - a table is read by its columns

DENIED = {
    R.CLUSTER: E.CLUSTER_AUTHORIZATION_FAILED,
    R.TOPIC: E.TOPIC_AUTHORIZATION_FAILED,
    R.GROUP: E.GROUP_AUTHORIZATION_FAILED,
    R.TRANSACTIONAL_ID: E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    R.USER: E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    R.DELEGATION_TOKEN: E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Rule(NamedTuple):
    operation: Operation
    resource: ResourceType
    # When, or for what; empty: always, for the request as a whole.
    of: str = ""


_TOPICS = "each topic"
_GROUPS = "each group"

RULES: dict[str, tuple[Rule, ...]] = {
    "Produce": (
        Rule(O.WRITE, R.TOPIC, _TOPICS),
        Rule(O.WRITE, R.TRANSACTIONAL_ID, "a request with a transactional id"),
    ),
    "Fetch": (Rule(O.READ, R.TOPIC, _TOPICS), Rule(O.CLUSTER_ACTION, R.CLUSTER, "a replica, instead")),
    "ListOffsets": (Rule(O.DESCRIBE, R.TOPIC, _TOPICS),),
    "Metadata": (
        Rule(O.DESCRIBE, R.TOPIC, _TOPICS + "; without names, those that may be described are told"),
        Rule(O.CREATE, R.TOPIC, "a topic that is to be created, or CREATE of CLUSTER"),
    ),
    "OffsetCommit": (Rule(O.READ, R.GROUP), Rule(O.READ, R.TOPIC, _TOPICS)),
    "OffsetFetch": (Rule(O.DESCRIBE, R.GROUP, _GROUPS), Rule(O.DESCRIBE, R.TOPIC, _TOPICS)),
    "FindCoordinator": (
        Rule(O.DESCRIBE, R.GROUP, "each key that is a group"),
        Rule(O.DESCRIBE, R.TRANSACTIONAL_ID, "each key that is a transactional id"),
    ),
    "JoinGroup": (Rule(O.READ, R.GROUP),),
    "Heartbeat": (Rule(O.READ, R.GROUP),),
    "LeaveGroup": (Rule(O.READ, R.GROUP),),
    "SyncGroup": (Rule(O.READ, R.GROUP),),
    "DescribeGroups": (Rule(O.DESCRIBE, R.GROUP, _GROUPS),),
    "ListGroups": (Rule(O.DESCRIBE, R.CLUSTER, "all groups"), Rule(O.DESCRIBE, R.GROUP, "else those that are told")),
    "SaslHandshake": (),
    "ApiVersions": (),
    "CreateTopics": (
        Rule(O.CREATE, R.TOPIC, _TOPICS + ", or CREATE of CLUSTER"),
        Rule(O.DESCRIBE_CONFIGS, R.TOPIC, "the settings in the answer"),
    ),
    "DeleteTopics": (Rule(O.DELETE, R.TOPIC, _TOPICS), Rule(O.DESCRIBE, R.TOPIC, "a topic by its id")),
    "DeleteRecords": (Rule(O.DELETE, R.TOPIC, _TOPICS),),
    "InitProducerId": (
        Rule(O.WRITE, R.TRANSACTIONAL_ID, "with a transactional id"),
        Rule(O.IDEMPOTENT_WRITE, R.CLUSTER, "without one, or WRITE of any TOPIC"),
    ),
    "OffsetForLeaderEpoch": (
        Rule(O.DESCRIBE, R.TOPIC, _TOPICS),
        Rule(O.CLUSTER_ACTION, R.CLUSTER, "instead, for all of them"),
    ),
    "AddPartitionsToTxn": (
        Rule(O.WRITE, R.TRANSACTIONAL_ID, "up to v3"),
        Rule(O.WRITE, R.TOPIC, _TOPICS + ", up to v3"),
        Rule(O.CLUSTER_ACTION, R.CLUSTER, "from v4 on, which is for brokers"),
    ),
    "AddOffsetsToTxn": (Rule(O.WRITE, R.TRANSACTIONAL_ID), Rule(O.READ, R.GROUP)),
    "EndTxn": (Rule(O.WRITE, R.TRANSACTIONAL_ID),),
    "WriteTxnMarkers": (Rule(O.CLUSTER_ACTION, R.CLUSTER, "or ALTER of CLUSTER"),),
    "TxnOffsetCommit": (
        Rule(O.WRITE, R.TRANSACTIONAL_ID),
        Rule(O.READ, R.GROUP),
        Rule(O.READ, R.TOPIC, _TOPICS),
    ),
    "DescribeAcls": (Rule(O.DESCRIBE, R.CLUSTER),),
    "CreateAcls": (Rule(O.ALTER, R.CLUSTER),),
    "DeleteAcls": (Rule(O.ALTER, R.CLUSTER),),
    "DescribeConfigs": (
        Rule(O.DESCRIBE_CONFIGS, R.TOPIC, "each topic"),
        Rule(O.DESCRIBE_CONFIGS, R.GROUP, "each group"),
        Rule(O.DESCRIBE_CONFIGS, R.CLUSTER, "brokers, loggers, client metrics"),
    ),
    "AlterConfigs": (
        Rule(O.ALTER_CONFIGS, R.TOPIC, "each topic"),
        Rule(O.ALTER_CONFIGS, R.GROUP, "each group"),
        Rule(O.ALTER_CONFIGS, R.CLUSTER, "brokers, loggers, client metrics"),
    ),
    "AlterReplicaLogDirs": (Rule(O.ALTER, R.CLUSTER),),
    "DescribeLogDirs": (Rule(O.DESCRIBE, R.CLUSTER),),
    "SaslAuthenticate": (),
    "CreatePartitions": (Rule(O.ALTER, R.TOPIC, _TOPICS),),
    "CreateDelegationToken": (Rule(O.CREATE_TOKENS, R.USER, "a token of somebody else"),),
    "RenewDelegationToken": (),
    "ExpireDelegationToken": (),
    "DescribeDelegationToken": (
        Rule(O.DESCRIBE, R.DELEGATION_TOKEN, "tokens of others; those that are not allowed are left out"),
        Rule(O.DESCRIBE_TOKENS, R.USER, "instead, all of somebody else"),
    ),
    "DeleteGroups": (Rule(O.DELETE, R.GROUP, _GROUPS),),
    "ElectLeaders": (Rule(O.ALTER, R.CLUSTER),),
    "IncrementalAlterConfigs": (
        Rule(O.ALTER_CONFIGS, R.TOPIC, "each topic"),
        Rule(O.ALTER_CONFIGS, R.GROUP, "each group"),
        Rule(O.ALTER_CONFIGS, R.CLUSTER, "brokers, loggers, client metrics"),
    ),
    "AlterPartitionReassignments": (Rule(O.ALTER, R.CLUSTER),),
    "ListPartitionReassignments": (Rule(O.DESCRIBE, R.CLUSTER),),
    "OffsetDelete": (Rule(O.DELETE, R.GROUP), Rule(O.READ, R.TOPIC, _TOPICS)),
    "DescribeClientQuotas": (Rule(O.DESCRIBE_CONFIGS, R.CLUSTER),),
    "AlterClientQuotas": (Rule(O.ALTER_CONFIGS, R.CLUSTER),),
    "DescribeUserScramCredentials": (Rule(O.DESCRIBE, R.CLUSTER),),
    "AlterUserScramCredentials": (Rule(O.ALTER, R.CLUSTER),),
    "DescribeQuorum": (Rule(O.DESCRIBE, R.CLUSTER),),
    "AlterPartition": (Rule(O.CLUSTER_ACTION, R.CLUSTER),),
    "UpdateFeatures": (Rule(O.ALTER, R.CLUSTER),),
    "Envelope": (Rule(O.CLUSTER_ACTION, R.CLUSTER),),
    "DescribeCluster": (),
    "DescribeProducers": (Rule(O.READ, R.TOPIC, _TOPICS),),
    "UnregisterBroker": (Rule(O.ALTER, R.CLUSTER),),
    "DescribeTransactions": (
        Rule(O.DESCRIBE, R.TRANSACTIONAL_ID, "each transactional id"),
        Rule(O.DESCRIBE, R.TOPIC, "the topics that are told of it"),
    ),
    "ListTransactions": (Rule(O.DESCRIBE, R.TRANSACTIONAL_ID, "those that are told"),),
    "AllocateProducerIds": (Rule(O.CLUSTER_ACTION, R.CLUSTER),),
    "ConsumerGroupHeartbeat": (
        Rule(O.READ, R.GROUP),
        Rule(O.DESCRIBE, R.TOPIC, "each topic that is subscribed to; of a regular expression, those that are found"),
    ),
    "ConsumerGroupDescribe": (
        Rule(O.DESCRIBE, R.GROUP, _GROUPS),
        Rule(O.DESCRIBE, R.TOPIC, "each topic of its members"),
    ),
    "AssignReplicasToDirs": (Rule(O.CLUSTER_ACTION, R.CLUSTER),),
    "ListConfigResources": (Rule(O.DESCRIBE_CONFIGS, R.CLUSTER),),
    "DescribeTopicPartitions": (Rule(O.DESCRIBE, R.TOPIC, _TOPICS),),
}
