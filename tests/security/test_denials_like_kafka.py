"""What a user without any permission hears: the same from a Kafka with an authorizer and from us, API by API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.apis import APIS
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.testing import Broker
from tests.security.test_acls import AUTHORIZER, USERS
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.raw_client import ConnectionClosed, RawClient, batch_of, fetch_request, produce_request

pytestmark = pytest.mark.jvm

# Names that exist on neither broker: who may not ask does not learn it.
TOPIC, GROUP, TXN = "topic", "group", "txn"


def requests(topic_name: str = TOPIC) -> Iterator[tuple[codec.Message, int]]:
    """One of each API that asks for something, as clients send them."""
    yield produce_request(topic_name, batch_of(b"x")), 9
    yield fetch_request([(topic_name, 0, 0)], max_wait_ms=0), 12
    part = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    yield (
        m.ListOffsetsRequest(topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=topic_name, partitions=[part])]),
        7,
    )
    yield m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=topic_name)]), 8
    yield m.MetadataRequest(topics=None, include_cluster_authorized_operations=True), 8
    offset = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic_name, partitions=[offset])
    yield m.OffsetCommitRequest(group_id=GROUP, topics=[topic]), 8
    fetched = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=topic_name, partition_indexes=[0])
    yield m.OffsetFetchRequest(group_id=GROUP, topics=[fetched]), 1
    yield m.OffsetFetchRequest(group_id=GROUP, topics=[fetched]), 7
    several = m.OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=GROUP, topics=[m.OffsetFetchRequest.OffsetFetchRequestTopics(name=topic_name, partition_indexes=[0])]
    )
    yield m.OffsetFetchRequest(groups=[several]), 8
    for key_type, key in ((0, GROUP), (1, TXN)):
        yield m.FindCoordinatorRequest(key=key, key_type=key_type), 3
        yield m.FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type), 4
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    yield (
        m.JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol], member_id=""
        ),
        7,
    )
    yield m.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="x"), 4
    member = m.LeaveGroupRequest.MemberIdentity(member_id="x")
    yield m.LeaveGroupRequest(group_id=GROUP, members=[member]), 4
    yield m.SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="x", assignments=[]), 4
    yield m.DescribeGroupsRequest(groups=[GROUP]), 5
    yield m.ListGroupsRequest(), 4
    new = m.CreateTopicsRequest.CreatableTopic(
        name=topic_name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    yield m.CreateTopicsRequest(topics=[new], timeout_ms=1000), 5
    yield m.DeleteTopicsRequest(topic_names=[topic_name], timeout_ms=1000), 4
    yield m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name=topic_name)], timeout_ms=1000), 6
    deleted = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)
    yield (
        m.DeleteRecordsRequest(
            topics=[m.DeleteRecordsRequest.DeleteRecordsTopic(name=topic_name, partitions=[deleted])], timeout_ms=1000
        ),
        2,
    )
    yield m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 3
    yield m.InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=1000), 3
    epoch = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    yield (
        m.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic_name, partitions=[epoch])],
        ),
        3,
    )
    yield (
        m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TXN,
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic_name, partitions=[0])],
        ),
        3,
    )
    yield m.AddOffsetsToTxnRequest(transactional_id=TXN, producer_id=1, producer_epoch=0, group_id=GROUP), 3
    yield m.EndTxnRequest(transactional_id=TXN, producer_id=1, producer_epoch=0, committed=True), 3
    marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=1,
        producer_epoch=0,
        transaction_result=True,
        coordinator_epoch=0,
        topics=[m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic_name, partition_indexes=[0])],
    )
    yield m.WriteTxnMarkersRequest(markers=[marker]), 1
    row = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    yield (
        m.TxnOffsetCommitRequest(
            transactional_id=TXN,
            group_id=GROUP,
            producer_id=1,
            producer_epoch=0,
            topics=[m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic_name, partitions=[row])],
        ),
        3,
    )
    wanted = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    yield m.DescribeAclsRequest(**wanted), 2
    yield m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter(**wanted)]), 2
    creation = m.CreateAclsRequest.AclCreation(
        resource_type=2,
        resource_name=topic_name,
        resource_pattern_type=3,
        principal="User:x",
        host="*",
        operation=3,
        permission_type=3,
    )
    yield m.CreateAclsRequest(creations=[creation]), 2
    for kind, name in ((2, topic_name), (4, "1"), (8, "1"), (32, GROUP)):
        described = m.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        yield m.DescribeConfigsRequest(resources=[described]), 4
        altered = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[]
        )
        yield m.IncrementalAlterConfigsRequest(resources=[altered], validate_only=False), 1
        whole = m.AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
        if kind != 8:
            yield m.AlterConfigsRequest(resources=[whole], validate_only=False), 1
    move = m.AlterReplicaLogDirsRequest.AlterReplicaLogDir(
        path="/x", topics=[m.AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic_name, partitions=[0])]
    )
    yield m.AlterReplicaLogDirsRequest(dirs=[move]), 1
    yield m.DescribeLogDirsRequest(topics=None), 1
    yield m.DescribeLogDirsRequest(topics=None), 4
    more = m.CreatePartitionsRequest.CreatePartitionsTopic(name=topic_name, count=2, assignments=None)
    yield m.CreatePartitionsRequest(topics=[more], timeout_ms=1000, validate_only=False), 3
    yield m.DeleteGroupsRequest(groups_names=[GROUP]), 2
    yield m.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000), 2
    yield m.AlterPartitionReassignmentsRequest(topics=[], timeout_ms=1000), 0
    yield m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000), 0
    gone = m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
    yield (
        m.OffsetDeleteRequest(
            group_id=GROUP, topics=[m.OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic_name, partitions=[gone])]
        ),
        0,
    )
    yield m.DescribeClientQuotasRequest(components=[], strict=False), 1
    entity = m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="x")
    yield (
        m.AlterClientQuotasRequest(
            entries=[m.AlterClientQuotasRequest.EntryData(entity=[entity], ops=[])], validate_only=False
        ),
        1,
    )
    # Without names Kafka 4.3.1 answers nothing at all to whoever may not ask.
    yield m.DescribeUserScramCredentialsRequest(users=[m.DescribeUserScramCredentialsRequest.UserName(name="x")]), 0
    scram = m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="x", mechanism=1)
    yield m.AlterUserScramCredentialsRequest(deletions=[scram], upsertions=[]), 0
    yield m.DescribeClusterRequest(include_cluster_authorized_operations=True), 0
    producers = m.DescribeProducersRequest.TopicRequest(name=topic_name, partition_indexes=[0])
    yield m.DescribeProducersRequest(topics=[producers]), 0
    yield m.DescribeTransactionsRequest(transactional_ids=[TXN]), 0
    yield m.ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0
    yield m.ConsumerGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=False), 0
    yield m.ListConfigResourcesRequest(), 0
    one = m.DescribeTopicPartitionsRequest.TopicRequest(name=topic_name)
    yield m.DescribeTopicPartitionsRequest(topics=[one], response_partition_limit=10, cursor=None), 0
    yield m.UnregisterBrokerRequest(broker_id=7), 0
    yield m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 2
    yield m.RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1000), 2
    yield m.ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1), 2
    yield m.DescribeDelegationTokenRequest(owners=None), 2
    yield m.UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[]), 1


# Only brokers send them, or a broker answers them to everybody.
NOT_ASKED = {
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "AlterPartition",
    "Envelope",
    "AllocateProducerIds",
    "AssignReplicasToDirs",
    # A KRaft quorum has another answer than a metadata store.
    "DescribeQuorum",
    # Its answer has a member's state in it.
    "ConsumerGroupHeartbeat",
}


def codes(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Every error code, and operations, with where they stand."""
    if isinstance(value, codec.Message):
        for name in type(value).__slots__:
            found = getattr(value, name)
            if name.endswith(("error_code", "authorized_operations")):
                yield f"{path}.{name}", int(found)
            else:
                yield from codes(found, f"{path}.{name}")
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from codes(one, path)


def wait_for(bootstrap: str) -> None:
    """Kafka opens its listeners one after the other."""
    for _ in range(600):
        try:
            RawClient.to(bootstrap).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.1)


def answers(bootstrap: str) -> dict[str, object]:
    heard: dict[str, object] = {}
    for number, (message, version) in enumerate(requests()):
        with RawClient.to(bootstrap) as client:
            client.call(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert client.call(m.SaslAuthenticateRequest(auth_bytes=b"\0ada\0secret"), 2).error_code == 0
            name = f"{number} {type(message).__name__} v{version}"
            try:
                heard[name] = sorted(codes(client.call(message, version)))
            except ConnectionClosed:
                heard[name] = "closed"
    return heard


def test_the_requests_are_of_every_api() -> None:
    asked = {type(message).__name__.removesuffix("Request") for message, _ in requests()}
    assert asked == {api.name for api in APIS.values()} - NOT_ASKED


def test_a_user_without_permissions_hears_the_same(tmp_path: Path) -> None:
    require_kafka_libs()
    security = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "authorizer.class.name": AUTHORIZER,
    }
    with KafkaPeer(tmp_path, {**security, "super.users": "User:ANONYMOUS"}, listeners=["SASL_PLAINTEXT"]) as kafka:
        wait_for(kafka.address("SASL_PLAINTEXT"))
        theirs = answers(kafka.address("SASL_PLAINTEXT"))
    with Broker({"listeners": "SASL_PLAINTEXT://127.0.0.1:0", **security}) as broker:
        ours = answers(broker.bootstrap_servers)
    different = {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]}
    assert different == {}
