"""The APIs this broker serves, with their versions: exactly what ApiVersions advertises.

A handler module is imported when its API is first asked for, so start-up pays only for the table. Versions are those of
Kafka 4.3. Produce is advertised from 0 because librdkafka misjudges compression support otherwise; versions below 3
are answered with an error.
"""

from __future__ import annotations

from typing import NamedTuple


class Api(NamedTuple):
    key: int
    name: str  # the message name without Request/Response
    module: str  # under ottla.broker.handlers, by family
    min_version: int
    max_version: int
    works_on_frames: bool = False  # carries the load, so its handler reads and writes the bytes itself
    for_controller: bool = False  # in a cluster any broker takes it and forwards it
    by_login_only: bool = False  # not for who came in by a delegation token or without a login: only we know which
    for_brokers: bool = False  # only brokers send it: clients are not told of it


_SERVED = (
    Api(0, "Produce", "records.produce", 0, 13, works_on_frames=True),
    Api(1, "Fetch", "records.fetch", 4, 18, works_on_frames=True),
    Api(2, "ListOffsets", "records.list_offsets", 1, 11),
    Api(3, "Metadata", "topics.metadata", 0, 13),
    Api(8, "OffsetCommit", "groups.offset_commit", 2, 10),
    Api(9, "OffsetFetch", "groups.offset_fetch", 1, 10),
    Api(10, "FindCoordinator", "groups.find_coordinator", 0, 6),
    Api(11, "JoinGroup", "groups.join_group", 0, 9),
    Api(12, "Heartbeat", "groups.heartbeat", 0, 4),
    Api(13, "LeaveGroup", "groups.leave_group", 0, 5),
    Api(14, "SyncGroup", "groups.sync_group", 0, 5),
    Api(15, "DescribeGroups", "groups.describe_groups", 0, 6),
    Api(16, "ListGroups", "groups.list_groups", 0, 5),
    Api(17, "SaslHandshake", "access.sasl_handshake", 0, 1),
    Api(18, "ApiVersions", "cluster.api_versions", 0, 4),
    Api(19, "CreateTopics", "topics.create_topics", 2, 7, for_controller=True),
    Api(20, "DeleteTopics", "topics.delete_topics", 1, 6, for_controller=True),
    Api(21, "DeleteRecords", "records.delete_records", 0, 2),
    Api(22, "InitProducerId", "transactions.init_producer_id", 0, 5),
    Api(23, "OffsetForLeaderEpoch", "records.offset_for_leader_epoch", 2, 4),
    Api(24, "AddPartitionsToTxn", "transactions.add_partitions_to_txn", 0, 5),
    Api(25, "AddOffsetsToTxn", "transactions.add_offsets_to_txn", 0, 4),
    Api(26, "EndTxn", "transactions.end_txn", 0, 5),
    Api(27, "WriteTxnMarkers", "transactions.write_txn_markers", 1, 2),
    Api(28, "TxnOffsetCommit", "transactions.txn_offset_commit", 0, 5),
    Api(29, "DescribeAcls", "access.describe_acls", 1, 3),
    Api(30, "CreateAcls", "access.create_acls", 1, 3, for_controller=True),
    Api(31, "DeleteAcls", "access.delete_acls", 1, 3, for_controller=True),
    Api(32, "DescribeConfigs", "configs.describe_configs", 1, 4),
    Api(33, "AlterConfigs", "configs.alter_configs", 0, 2, for_controller=True),
    Api(34, "AlterReplicaLogDirs", "cluster.alter_replica_log_dirs", 1, 2),
    Api(35, "DescribeLogDirs", "cluster.describe_log_dirs", 1, 5),
    Api(36, "SaslAuthenticate", "access.sasl_authenticate", 0, 2),
    Api(37, "CreatePartitions", "topics.create_partitions", 0, 3, for_controller=True),
    Api(38, "CreateDelegationToken", "access.create_delegation_token", 1, 3, for_controller=True, by_login_only=True),
    Api(39, "RenewDelegationToken", "access.renew_delegation_token", 1, 2, for_controller=True, by_login_only=True),
    Api(40, "ExpireDelegationToken", "access.expire_delegation_token", 1, 2, for_controller=True, by_login_only=True),
    Api(41, "DescribeDelegationToken", "access.describe_delegation_token", 1, 3),
    Api(42, "DeleteGroups", "groups.delete_groups", 0, 2),
    Api(43, "ElectLeaders", "cluster.elect_leaders", 0, 2, for_controller=True),
    Api(44, "IncrementalAlterConfigs", "configs.incremental_alter_configs", 0, 1, for_controller=True),
    Api(45, "AlterPartitionReassignments", "cluster.alter_partition_reassignments", 0, 1, for_controller=True),
    Api(46, "ListPartitionReassignments", "cluster.list_partition_reassignments", 0, 0, for_controller=True),
    Api(47, "OffsetDelete", "groups.offset_delete", 0, 0),
    Api(48, "DescribeClientQuotas", "configs.describe_client_quotas", 0, 1),
    Api(49, "AlterClientQuotas", "configs.alter_client_quotas", 0, 1, for_controller=True),
    Api(50, "DescribeUserScramCredentials", "access.describe_user_scram_credentials", 0, 0),
    Api(51, "AlterUserScramCredentials", "access.alter_user_scram_credentials", 0, 0, for_controller=True),
    Api(55, "DescribeQuorum", "cluster.describe_quorum", 0, 2),
    Api(56, "AlterPartition", "cluster.alter_partition", 2, 3, for_brokers=True),
    Api(57, "UpdateFeatures", "cluster.update_features", 0, 2, for_controller=True),
    Api(58, "Envelope", "cluster.envelope", 0, 0, for_brokers=True),
    Api(60, "DescribeCluster", "cluster.describe_cluster", 0, 2),
    Api(61, "DescribeProducers", "transactions.describe_producers", 0, 0),
    Api(64, "UnregisterBroker", "cluster.unregister_broker", 0, 0, for_controller=True),
    Api(65, "DescribeTransactions", "transactions.describe_transactions", 0, 0),
    Api(66, "ListTransactions", "transactions.list_transactions", 0, 2),
    Api(67, "AllocateProducerIds", "transactions.allocate_producer_ids", 0, 0, for_brokers=True),
    Api(68, "ConsumerGroupHeartbeat", "groups.consumer_group_heartbeat", 0, 1),
    Api(69, "ConsumerGroupDescribe", "groups.consumer_group_describe", 0, 1),
    Api(73, "AssignReplicasToDirs", "cluster.assign_replicas_to_dirs", 0, 0, for_brokers=True),
    Api(74, "ListConfigResources", "configs.list_config_resources", 0, 1),
    Api(75, "DescribeTopicPartitions", "topics.describe_topic_partitions", 0, 0),
)

APIS: dict[int, Api] = {api.key: api for api in _SERVED}
