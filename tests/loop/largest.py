"""For every API the largest request that a broker takes: as many elements as one may name, or as many bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.codec import REQUEST_ELEMENTS_MAX, Message
from tests.support.raw_client import batch_of, fetch_request

# Arrays around the one that is large count as well.
MANY = REQUEST_ELEMENTS_MAX - 10
# Topics that are there: one with many partitions, and many with one.
WIDE, WIDE_PARTITIONS, NARROW = "wide", 1_000, 300
GROUP, TRANSACTION = "group", "transaction"


def narrow(number: int) -> str:
    return f"narrow-{number % NARROW}"


def _indexes(count: int = MANY) -> list[int]:
    return [number % WIDE_PARTITIONS for number in range(count)]


def largest_requests() -> Iterator[tuple[str, Message, int]]:
    """(what it is, the request, its version); every API at least once."""
    yield from _reading()
    yield from _groups()
    yield from _transactions()
    yield from _admin()
    yield from _configs()
    yield from _single()


Requests = Iterator[tuple[str, Message, int]]


def _produce(count: int, value: bytes) -> m.ProduceRequest:
    batch = batch_of(value)
    data = [m.ProduceRequest.PartitionProduceData(index=n, records=batch) for n in _indexes(count)]
    topic = m.ProduceRequest.TopicProduceData(name=WIDE, partition_data=data)
    return m.ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[topic])


def _reading() -> Requests:
    yield "Produce, small batches", _produce(MANY, b"x"), 9
    yield "Produce, large batches", _produce(90, b"x" * 1_000_000), 9
    everywhere = [(WIDE, number, 0) for number in _indexes(MANY // 2)]
    yield "Fetch", fetch_request(everywhere), 12
    offsets = m.ListOffsetsRequest.ListOffsetsPartition
    for timestamp in (-1, -2, -3, 5):
        partitions = [offsets(partition_index=number, timestamp=timestamp) for number in range(MANY)]
        topic = m.ListOffsetsRequest.ListOffsetsTopic(name=WIDE, partitions=partitions)
        yield f"ListOffsets {timestamp}", m.ListOffsetsRequest(replica_id=-1, topics=[topic]), 7
    named = m.MetadataRequest.MetadataRequestTopic
    for what, names in (
        ("of one", [WIDE] * MANY),
        ("of many", [narrow(n) for n in range(MANY)]),
        ("of unknown", [f"nowhere-{n}" for n in range(MANY)]),
    ):
        request = m.MetadataRequest(topics=[named(name=name) for name in names], allow_auto_topic_creation=False)
        yield f"Metadata {what}", request, 12
    yield "Metadata of all", m.MetadataRequest(topics=None), 12
    epochs = m.OffsetForLeaderEpochRequest
    lines = [epochs.OffsetForLeaderPartition(partition=n, leader_epoch=0) for n in _indexes()]
    asked = epochs.OffsetForLeaderTopic(topic=WIDE, partitions=lines)
    yield "OffsetForLeaderEpoch", epochs(replica_id=-1, topics=[asked]), 4


def _groups() -> Requests:
    yield "FindCoordinator", m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 6
    commit = m.OffsetCommitRequest.OffsetCommitRequestPartition
    for what, names in (("wide", [WIDE]), ("narrow", [narrow(n) for n in range(NARROW)])):
        each = (MANY - len(names)) // len(names)
        topics = [
            m.OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    commit(partition_index=n if name == WIDE else 0, committed_offset=n) for n in _indexes(each)
                ],
            )
            for name in names
        ]
        yield f"OffsetCommit {what}", m.OffsetCommitRequest(group_id=GROUP, topics=topics), 9
    fetched = m.OffsetFetchRequest
    asked = fetched.OffsetFetchRequestGroup(
        group_id=GROUP, topics=[fetched.OffsetFetchRequestTopics(name=WIDE, partition_indexes=_indexes())]
    )
    yield "OffsetFetch", fetched(groups=[asked]), 9
    all_topics = [fetched.OffsetFetchRequestGroup(group_id=GROUP, topics=None)]
    yield "OffsetFetch of all", fetched(groups=all_topics), 9
    yield "OffsetFetch of many groups", fetched(groups=all_topics * 100), 9
    names = [f"group-{number}" for number in range(MANY)]
    yield "FindCoordinator of many", m.FindCoordinatorRequest(key_type=0, coordinator_keys=names), 6
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
    yield (
        "JoinGroup",
        m.JoinGroupRequest(
            group_id="joined",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol(name=name, metadata=b"x" * 100) for name in names],
        ),
        9,
    )
    yield (
        "JoinGroup of many bytes",
        m.JoinGroupRequest(
            group_id="joined-large",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol(name="one", metadata=bytes(90 << 20))],
        ),
        9,
    )
    assignment = m.SyncGroupRequest.SyncGroupRequestAssignment
    yield (
        "SyncGroup",
        m.SyncGroupRequest(group_id="joined", assignments=[assignment(member_id=name) for name in names]),
        5,
    )
    yield "Heartbeat", m.HeartbeatRequest(group_id=GROUP), 4
    member = m.LeaveGroupRequest.MemberIdentity
    yield "LeaveGroup", m.LeaveGroupRequest(group_id="joined", members=[member(member_id=name) for name in names]), 5
    yield "DescribeGroups", m.DescribeGroupsRequest(groups=names), 5
    yield "DescribeGroups, known", m.DescribeGroupsRequest(groups=[GROUP] * MANY), 5
    yield "ListGroups", m.ListGroupsRequest(states_filter=names), 5
    yield (
        "ConsumerGroupHeartbeat",
        m.ConsumerGroupHeartbeatRequest(
            group_id="modern",
            member_id="member",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=[WIDE, *(narrow(n) for n in range(MANY - 10))],
            topic_partitions=(),
        ),
        1,
    )
    yield "ConsumerGroupDescribe", m.ConsumerGroupDescribeRequest(group_ids=names), 1
    yield "ConsumerGroupDescribe, known", m.ConsumerGroupDescribeRequest(group_ids=["modern"] * MANY), 1
    deleted = m.OffsetDeleteRequest
    line = deleted.OffsetDeleteRequestPartition
    topic = deleted.OffsetDeleteRequestTopic(name=WIDE, partitions=[line(partition_index=n) for n in _indexes()])
    yield "OffsetDelete", deleted(group_id=GROUP, topics=[topic]), 0
    yield "DeleteGroups", m.DeleteGroupsRequest(groups_names=[GROUP, *names[:-1]]), 2


def _transactions() -> Requests:
    yield "FindCoordinator of transactions", m.FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTION]), 6
    yield "InitProducerId", m.InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000), 4
    topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    yield (
        "AddPartitionsToTxn",
        m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTION,
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[topic(name=WIDE, partitions=_indexes())],
        ),
        3,
    )
    yield (
        "AddOffsetsToTxn",
        m.AddOffsetsToTxnRequest(transactional_id=TRANSACTION, producer_id=0, producer_epoch=0, group_id=GROUP),
        3,
    )
    line = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    commit = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
        name=WIDE, partitions=[line(partition_index=n, committed_offset=n) for n in _indexes()]
    )
    yield (
        "TxnOffsetCommit",
        m.TxnOffsetCommitRequest(
            transactional_id=TRANSACTION,
            group_id="of-transaction",
            producer_id=0,
            producer_epoch=0,
            generation_id=-1,
            topics=[commit],
        ),
        3,
    )
    names = [TRANSACTION] * (MANY // 2) + [f"transaction-{number}" for number in range(MANY // 2)]
    yield "DescribeTransactions", m.DescribeTransactionsRequest(transactional_ids=names), 0
    yield "ListTransactions", m.ListTransactionsRequest(producer_id_filters=list(range(MANY))), 1
    producers = m.DescribeProducersRequest.TopicRequest(name=WIDE, partition_indexes=_indexes())
    yield "DescribeProducers", m.DescribeProducersRequest(topics=[producers]), 0
    yield "EndTxn", m.EndTxnRequest(transactional_id=TRANSACTION, producer_id=0, producer_epoch=0, committed=True), 3
    markers = m.WriteTxnMarkersRequest
    marker = markers.WritableTxnMarker(
        producer_id=77,
        producer_epoch=1,
        transaction_result=False,
        topics=[markers.WritableTxnMarkerTopic(name=WIDE, partition_indexes=_indexes())],
    )
    yield "WriteTxnMarkers", markers(markers=[marker]), 1


def _admin() -> Requests:
    created = m.CreateTopicsRequest.CreatableTopic
    for what, only in (("checked", True), ("refused", False)):
        topics = [
            created(name=f"new-{n}" if only else narrow(0), num_partitions=1, replication_factor=1)
            for n in range(MANY // 4)
        ]
        yield f"CreateTopics {what}", m.CreateTopicsRequest(topics=topics, timeout_ms=60_000, validate_only=only), 7
    one = [created(name="made", num_partitions=2_000, replication_factor=1)]
    yield "CreateTopics", m.CreateTopicsRequest(topics=one, timeout_ms=60_000), 7
    more = m.CreatePartitionsRequest.CreatePartitionsTopic
    yield (
        "CreatePartitions",
        m.CreatePartitionsRequest(topics=[more(name="made", count=4_000, assignments=None)], timeout_ms=60_000),
        3,
    )
    yield (
        "CreatePartitions checked",
        m.CreatePartitionsRequest(
            topics=[more(name=f"nowhere-{n}", count=2, assignments=None) for n in range(MANY)],
            timeout_ms=60_000,
            validate_only=True,
        ),
        3,
    )
    doomed = m.DeleteRecordsRequest.DeleteRecordsPartition
    topic = m.DeleteRecordsRequest.DeleteRecordsTopic(
        name=WIDE, partitions=[doomed(partition_index=n, offset=-1) for n in _indexes()]
    )
    yield "DeleteRecords", m.DeleteRecordsRequest(topics=[topic], timeout_ms=60_000), 2
    yield (
        "ElectLeaders",
        m.ElectLeadersRequest(
            topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic=WIDE, partitions=_indexes())]
        ),
        2,
    )
    moved = m.AlterPartitionReassignmentsRequest
    replicas = [moved.ReassignablePartition(partition_index=n, replicas=[1]) for n in _indexes(MANY // 2)]
    yield "AlterPartitionReassignments", moved(topics=[moved.ReassignableTopic(name=WIDE, partitions=replicas)]), 1
    listed = m.ListPartitionReassignmentsRequest
    yield (
        "ListPartitionReassignments",
        listed(topics=[listed.ListPartitionReassignmentsTopics(name=WIDE, partition_indexes=_indexes())]),
        0,
    )
    dirs = m.AlterReplicaLogDirsRequest
    yield (
        "AlterReplicaLogDirs",
        dirs(
            dirs=[
                dirs.AlterReplicaLogDir(
                    path="/nowhere", topics=[dirs.AlterReplicaLogDirTopic(name=WIDE, partitions=_indexes())]
                )
            ]
        ),
        2,
    )
    described = m.DescribeLogDirsRequest
    yield (
        "DescribeLogDirs",
        described(topics=[described.DescribableLogDirTopic(topic=WIDE, partitions=_indexes())]),
        4,
    )
    yield "DescribeLogDirs of all", described(topics=None), 4
    pages = m.DescribeTopicPartitionsRequest
    yield (
        "DescribeTopicPartitions",
        pages(
            topics=[pages.TopicRequest(name=f"nowhere-{n}") for n in range(MANY - 1)] + [pages.TopicRequest(name=WIDE)],
            response_partition_limit=2_000,
        ),
        0,
    )
    yield (
        "DeleteTopics, unknown",
        m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.DeleteTopicState(name=f"nowhere-{n}") for n in range(MANY)], timeout_ms=60_000
        ),
        6,
    )
    yield (
        "DeleteTopics",
        m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="made")], timeout_ms=60_000),
        6,
    )


def _configs() -> Requests:
    described = m.DescribeConfigsRequest.DescribeConfigsResource
    resources = [described(resource_type=2, resource_name=narrow(n), configuration_keys=None) for n in range(NARROW)]
    request = m.DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
    yield "DescribeConfigs", request, 4
    unknown = [described(resource_type=2, resource_name=f"nowhere-{n}", configuration_keys=None) for n in range(MANY)]
    yield "DescribeConfigs of unknown", m.DescribeConfigsRequest(resources=unknown), 4
    keys = [described(resource_type=4, resource_name="1", configuration_keys=[f"key-{n}" for n in range(MANY)])]
    yield "DescribeConfigs of many keys", m.DescribeConfigsRequest(resources=keys), 4
    for kind, version in ((m.AlterConfigsRequest, 2), (m.IncrementalAlterConfigsRequest, 1)):
        made: Any = kind
        for what, topics, settings in (("many topics", MANY // 2, 1), ("many settings", 1, MANY - 2)):
            resources = [
                made.AlterConfigsResource(
                    resource_type=2,
                    resource_name=f"nowhere-{n}" if topics > 1 else WIDE,
                    configs=[made.AlterableConfig(name=f"key-{k}", value="1") for k in range(settings)],
                )
                for n in range(topics)
            ]
            name = made.__name__.removesuffix("Request")
            yield f"{name}, {what}", made(resources=resources, validate_only=True), version
    one = m.IncrementalAlterConfigsRequest
    retention = one.AlterableConfig(name="retention.ms", value="1000000000")
    resource = one.AlterConfigsResource(resource_type=2, resource_name=WIDE, configs=[retention])
    yield "IncrementalAlterConfigs of a wide topic", one(resources=[resource]), 1
    default = one.AlterableConfig(name="log.retention.ms", value="1000000001")
    resource = one.AlterConfigsResource(resource_type=4, resource_name="", configs=[default])
    yield "IncrementalAlterConfigs of a default", one(resources=[resource]), 1
    yield "ListConfigResources", m.ListConfigResourcesRequest(), 1


def _single() -> Requests:
    """What has no large form of its own, and what is refused whatever it says."""
    yield "ApiVersions", m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4
    yield "DescribeCluster", m.DescribeClusterRequest(), 1
    yield (
        "DescribeQuorum",
        m.DescribeQuorumRequest(
            topics=[
                m.DescribeQuorumRequest.TopicData(
                    topic_name="__cluster_metadata",
                    partitions=[m.DescribeQuorumRequest.PartitionData(partition_index=0)] * (MANY - 1),
                )
            ]
        ),
        1,
    )
    yield "UnregisterBroker", m.UnregisterBrokerRequest(broker_id=9), 0
    acls = m.CreateAclsRequest
    creation = acls.AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )
    yield "CreateAcls", acls(creations=[creation] * MANY), 3
    pattern = {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 2, "permission_type": 3}
    yield "DescribeAcls", m.DescribeAclsRequest(**pattern), 3
    yield "DeleteAcls", m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter(**pattern)] * MANY), 3
    quotas = m.DescribeClientQuotasRequest
    yield (
        "DescribeClientQuotas",
        quotas(components=[quotas.ComponentData(entity_type="user", match_type=0, match=f"u{n}") for n in range(MANY)]),
        1,
    )
    altered = m.AlterClientQuotasRequest
    entry = altered.EntryData(entity=[altered.EntityData(entity_type="user", entity_name="u")], ops=())
    yield "AlterClientQuotas", altered(entries=[entry] * (MANY // 2)), 1
    tokens = m.CreateDelegationTokenRequest
    renewer = tokens.CreatableRenewers(principal_type="User", principal_name="r")
    yield "CreateDelegationToken", tokens(renewers=[renewer] * MANY, max_lifetime_ms=-1), 3
    yield "RenewDelegationToken", m.RenewDelegationTokenRequest(hmac=bytes(100_000), renew_period_ms=-1), 2
    yield "ExpireDelegationToken", m.ExpireDelegationTokenRequest(hmac=bytes(100_000), expiry_time_period_ms=-1), 2
    owner = m.DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(principal_type="User", principal_name="u")
    yield "DescribeDelegationToken", m.DescribeDelegationTokenRequest(owners=[owner] * MANY), 3
    yield "SaslHandshake", m.SaslHandshakeRequest(mechanism="x" * 30_000), 1
    yield "SaslAuthenticate", m.SaslAuthenticateRequest(auth_bytes=bytes(1_000_000)), 2
    users = m.DescribeUserScramCredentialsRequest
    yield "DescribeUserScramCredentials", users(users=[users.UserName(name=f"u{n}") for n in range(MANY)]), 0
    scram = m.AlterUserScramCredentialsRequest
    yield (
        "AlterUserScramCredentials",
        scram(deletions=[scram.ScramCredentialDeletion(name=f"u{n}", mechanism=1) for n in range(MANY)]),
        0,
    )
    features = m.UpdateFeaturesRequest
    updates = [features.FeatureUpdateKey(feature=f"f{n}", max_version_level=1, upgrade_type=1) for n in range(MANY)]
    yield "UpdateFeatures", features(feature_updates=updates, validate_only=True), 1
