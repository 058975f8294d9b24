"""One conversation about topics and the cluster that Kafka and Ottla must answer alike.

`transcript(client)` is run against both; `RECORDED` is what Kafka 4.3.1 answered, field by field. What differs from run
to run (ids, addresses, free space) is replaced by a word. Run this file with OTTLA_KAFKA_LIBS set to record again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch
from tests.support.raw_client import RawClient

RECORDED = Path(__file__).with_name("admin_scenario.kafka-4.3.1.json")
# Kafka's broker hears of a change a little after its controller has answered.
KAFKA_PAUSE_S = 0.15
PROPERTIES = {"node.id": "1", "auto.create.topics.enable": "false"}

UNKNOWN_ID = b"u" * 16
Step = tuple[str, Message, int]

# What a broker says about itself, and what changes from run to run.
_HIDDEN = {
    "cluster_id",
    "host",
    "port",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "partition_size",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
}


def transcript(client: RawClient, data_dir: Path, pause_s: float = 0.0) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for part in (
        _creation,
        _partitions,
        _metadata,
        _pages,
        _offsets,
        _leaders,
        _cluster,
        _features,
        _security,
        _deletion,
    ):
        for label, request, version in part(client, data_dir):
            assert label not in answers
            answers[label] = json.loads(json.dumps(_plain(client.call(request, version))))
            time.sleep(pause_s)
    return answers


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Message):
        return {
            field: "..." if field in _HIDDEN and getattr(value, field) else _plain(getattr(value, field), field)
            for field in value.__slots__
        }
    if isinstance(value, (list, tuple)):
        plain = [_plain(one) for one in value]
        return sorted(plain, key=_name_of) if plain and isinstance(plain[0], dict) else plain
    if isinstance(value, (bytes, bytearray)):
        return "an id" if any(value) and value != UNKNOWN_ID else value.hex()
    return ErrorCode(value).name if name == "error_code" else value


def _name_of(plain: dict[str, Any]) -> str:
    """Answers about several topics come in any order."""
    return str(
        [plain.get(key) for key in ("name", "topic", "topic_name", "user", "feature", "partition_index", "topic_id")]
    )


# --- the conversation, part by part ------------------------------------------------------------------------------


def _creation(client: RawClient, data_dir: Path) -> Iterator[Step]:
    topic = m.CreateTopicsRequest.CreatableTopic
    assignment = m.CreateTopicsRequest.CreatableReplicaAssignment

    def create(*topics: Any, version: int = 4, **more: Any) -> tuple[Message, int]:
        # v4 and not v7: the settings in the answer are the business of config_scenario.
        return m.CreateTopicsRequest(topics=topics, **{"timeout_ms": 20_000, **more}), version

    yield "create", *create(topic(name="one", num_partitions=1, replication_factor=1))
    yield "create with defaults", *create(topic(name="two", num_partitions=-1, replication_factor=-1))
    yield "create again", *create(topic(name="one", num_partitions=1, replication_factor=1))
    yield (
        "create twice in one request",
        *create(
            topic(name="d", num_partitions=1, replication_factor=1),
            topic(name="d", num_partitions=1, replication_factor=1),
            topic(name="e", num_partitions=3, replication_factor=1),
        ),
    )
    yield "create nothing", *create()
    yield "create what collides", *create(topic(name="a.b", num_partitions=1, replication_factor=1))
    yield "create what collides, then", *create(topic(name="a_b", num_partitions=1, replication_factor=1))
    for name in ("", ".", "..", "a/b", "a b", "ü", "x" * 250, "__cluster_metadata"):
        refused = topic(name=name, num_partitions=1, replication_factor=1)
        yield f"create {name[:20]!r}", *create(refused, validate_only=True)
    yield "create with 249 characters", *create(topic(name="x" * 249, num_partitions=1, replication_factor=1))
    for partitions, factor in ((0, 1), (-2, 1), (1, 0), (1, -2), (0, 0)):
        wanted = topic(name="n", num_partitions=partitions, replication_factor=factor)
        yield f"create {partitions} x {factor}", *create(wanted, validate_only=True)
    yield (
        "create and only validate",
        *create(topic(name="n", num_partitions=1, replication_factor=1), validate_only=True),
    )
    for timeout_ms in (0, -1):
        wanted = topic(name="n", num_partitions=1, replication_factor=1)
        yield f"create within {timeout_ms} ms", *create(wanted, timeout_ms=timeout_ms)
    for replicas, partitions, factor in (
        ([(0, [1]), (1, [1])], -1, -1),
        ([(0, [1])], 1, -1),
        ([(0, [1])], -1, 1),
        ([(0, [])], -1, -1),
        ([(0, [9])], -1, -1),
        ([(1, [1])], -1, -1),
        ([(0, [1]), (0, [1])], -1, -1),
        ([(0, [1, 1])], -1, -1),
    ):
        by_hand = [assignment(partition_index=index, broker_ids=brokers) for index, brokers in replicas]
        wanted = topic(name="n", num_partitions=partitions, replication_factor=factor, assignments=by_hand)
        yield f"create {replicas} {partitions} x {factor}", *create(wanted, validate_only=True)


def _partitions(client: RawClient, data_dir: Path) -> Iterator[Step]:
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic
    assignment = m.CreatePartitionsRequest.CreatePartitionsAssignment

    def grow(*topics: Any, **more: Any) -> tuple[Message, int]:
        return m.CreatePartitionsRequest(topics=topics, **{"timeout_ms": 20_000, **more}), 3

    yield "grow", *grow(topic(name="two", count=2, assignments=None))
    for count in (2, 1, 0, -1):
        yield f"grow to {count}", *grow(topic(name="two", count=count, assignments=None))
    yield "grow what is not there", *grow(topic(name="gone", count=2, assignments=None))
    yield "grow twice", *grow(*[topic(name="two", count=9, assignments=None)] * 2)
    yield "grow in no time", *grow(topic(name="two", count=9, assignments=None), timeout_ms=0)
    yield (
        "grow two",
        *grow(topic(name="two", count=3, assignments=None), topic(name="gone", count=3, assignments=None)),
    )
    for brokers in ([[1]], [[1], [1]], [], [[7]], [[]], [[1, 1]]):
        by_hand = [assignment(broker_ids=one) for one in brokers]
        yield f"grow onto {brokers}", *grow(topic(name="two", count=4, assignments=by_hand), validate_only=True)


def _metadata(client: RawClient, data_dir: Path) -> Iterator[Step]:
    topic = m.MetadataRequest.MetadataRequestTopic

    def ask(topics: Any, version: int, **more: Any) -> tuple[Message, int]:
        return m.MetadataRequest(topics=topics, **{"allow_auto_topic_creation": False, **more}), version

    for version in range(14):
        names = [topic(name="two"), topic(name="gone"), topic(name="a/b"), topic(name="two")]
        yield f"metadata of some v{version}", *ask(names, version)
        yield f"metadata of none v{version}", *ask([], version)
    yield "metadata of all", *ask(None, 12)
    yield (
        "metadata with operations",
        *ask(
            [topic(name="two")],
            10,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        ),
    )
    yield "metadata of an internal topic that is not there", *ask([topic(name="__consumer_offsets")], 12)
    yield "metadata with creation, but not by the broker", *ask([topic(name="g")], 12, allow_auto_topic_creation=True)
    known = client.call(m.MetadataRequest(topics=[topic(name="one")]), 12).topics[0].topic_id
    yield "metadata by id", *ask([topic(topic_id=known, name=None)], 12)
    yield "metadata by an unknown id", *ask([topic(topic_id=UNKNOWN_ID, name=None)], 12)
    yield "metadata by id and name", *ask([topic(topic_id=known, name="two"), topic(name="two")], 12)


def _pages(client: RawClient, data_dir: Path) -> Iterator[Step]:
    topic, cursor = m.DescribeTopicPartitionsRequest.TopicRequest, m.DescribeTopicPartitionsRequest.Cursor

    def page(names: list[str], limit: int, at: tuple[str, int] | None = None) -> tuple[Message, int]:
        position = cursor(topic_name=at[0], partition_index=at[1]) if at else None
        asked = [topic(name=name) for name in names]
        request = m.DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=limit, cursor=position)
        return request, 0

    yield "page of some", *page(["two", "gone", "a/b", "one"], 2000)
    yield "page of two", *page([], 2)
    yield "page from a cursor", *page(["two", "one"], 1, ("two", 1))
    yield "page from a cursor past the end", *page(["two", "one"], 2, ("two", 7))
    yield "page from a cursor at another topic", *page(["two"], 2, ("one", 0))
    yield "page from a cursor before the start", *page(["two"], 2, ("two", -1))
    yield "page of nothing", *page(["two"], 0)
    yield "page that ends with an unknown topic", *page(["aaa", "two", "zzz"], 1)


def _offsets(client: RawClient, data_dir: Path) -> Iterator[Step]:
    yield from _records()
    yield from _list_offsets("log")
    yield from _epochs()
    producers = m.DescribeProducersRequest.TopicRequest
    asked = [producers(name=name, partition_indexes=[0, 9]) for name in ("log", "gone", "a/b")]
    yield "producers", m.DescribeProducersRequest(topics=asked), 0
    for offset in (2, 1, -2, 99, -1):
        yield from _delete_records("log", 0, offset)
    for topic, index in (("gone", 0), ("log", 9), ("compacted", 0)):
        yield from _delete_records(topic, index, 0)
    # Kafka still names the latest record here although it is deleted; we say that there is none.
    yield from (step for step in _list_offsets("log", " when all is deleted") if " at -3 " not in step[0])
    yield from _list_offsets("two", " when there was nothing")


def _records() -> Iterator[Step]:
    """Five records in three batches, out of order in time, one batch compressed."""
    topic, setting = m.CreateTopicsRequest.CreatableTopic, m.CreateTopicsRequest.CreatableTopicConfig
    for name, configs in (("log", {"retention.ms": "-1"}), ("compacted", {"cleanup.policy": "compact"})):
        settings = [setting(name=key, value=value) for key, value in configs.items()]
        wanted = topic(name=name, num_partitions=1, replication_factor=1, configs=settings)
        yield f"create {name}", m.CreateTopicsRequest(topics=[wanted], timeout_ms=20_000), 4
    data, sequence = m.ProduceRequest, 0
    for codec, times in ((Codec.NONE, [1000, 1010]), (Codec.GZIP, [1040, 1030]), (Codec.NONE, [1020])):
        records = [Record(offset, time, None, b"value", ()) for offset, time in enumerate(times)]
        batch = build_batch(records, codec=codec, producer_id=77, producer_epoch=3, base_sequence=sequence)
        sequence += len(times)
        partition = data.PartitionProduceData(index=0, records=bytes(batch))
        sent = data.TopicProduceData(name="log", partition_data=[partition])
        yield f"produce {times}", data(acks=-1, timeout_ms=20_000, topic_data=[sent]), 9


def _list_offsets(topic: str, when: str = "") -> Iterator[Step]:
    listed = m.ListOffsetsRequest

    def ask(index: int, timestamp: int, version: int, *, epoch: int = -1, count: int = 1, **more: Any) -> Step:
        one = listed.ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        request = listed(
            replica_id=-1,
            timeout_ms=5000,
            topics=[listed.ListOffsetsTopic(name=topic, partitions=[one] * count)],
            **more,
        )
        return f"offset of {topic}-{index} at {timestamp} v{version} {epoch} {count} {more}{when}", request, version

    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 1000, 1001, 1011, 1020, 1021, 1031, 1040, 1041, 2**62):
        yield ask(0, timestamp, 11)
    for version, timestamp in ((1, -1), (2, -2), (4, 1001), (1, -3), (6, -3), (7, -3), (7, -4), (8, -5), (10, -6)):
        yield ask(0, timestamp, version)
    yield ask(9, -1, 11)
    yield ask(0, -1, 11, epoch=0)
    yield ask(0, -1, 11, epoch=9)
    yield ask(0, -1, 11, count=2)
    yield ask(0, -1, 11, isolation_level=1)
    yield ask(0, 1001, 11, isolation_level=1)


def _epochs() -> Iterator[Step]:
    asked = m.OffsetForLeaderEpochRequest
    for topic, index, current, epoch in (
        ("log", 0, -1, 0),
        ("log", 0, 0, 0),
        ("two", 0, -1, 0),
        ("log", 0, -1, 5),
        ("log", 0, -1, -1),
        ("log", 0, 9, 0),
        ("gone", 0, -1, 0),
        ("log", 9, -1, 0),
    ):
        partition = asked.OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        one = asked.OffsetForLeaderTopic(topic=topic, partitions=[partition])
        for version in (2, 4):
            yield (
                f"epoch {epoch} of {topic}-{index} at {current} v{version}",
                asked(replica_id=-1, topics=[one]),
                version,
            )


def _delete_records(topic: str, index: int, offset: int) -> Iterator[Step]:
    asked = m.DeleteRecordsRequest
    partition = asked.DeleteRecordsPartition(partition_index=index, offset=offset)
    one = asked.DeleteRecordsTopic(name=topic, partitions=[partition])
    for version in (0, 2):
        yield f"delete {topic}-{index} to {offset} v{version}", asked(topics=[one], timeout_ms=5000), version


def _leaders(client: RawClient, data_dir: Path) -> Iterator[Step]:
    elected = m.ElectLeadersRequest.TopicPartitions
    for kind in (0, 1, 7):
        asked = [elected(topic="two", partitions=[0, 9]), elected(topic="gone", partitions=[0])]
        request = m.ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=1000)
        yield f"elect {kind}", request, 2
    yield "elect all", m.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000), 2

    moved = m.AlterPartitionReassignmentsRequest
    for name, index, replicas in (
        ("two", 0, [1]),
        ("two", 0, None),
        ("two", 0, [7]),
        ("two", 0, [-1]),
        ("two", 0, []),
        ("two", 0, [1, 1]),
        ("gone", 0, [1]),
        ("two", 9, [1]),
        ("two", 9, None),
    ):
        partition = moved.ReassignablePartition(partition_index=index, replicas=replicas)
        asked_topic = moved.ReassignableTopic(name=name, partitions=[partition])
        yield f"move {name}-{index} to {replicas}", moved(timeout_ms=5000, topics=[asked_topic]), 1
    listed = m.ListPartitionReassignmentsRequest
    some = [listed.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in ("two", "gone")]
    yield "moves of all", listed(topics=None), 0
    yield "moves of some", listed(topics=some), 0


def _cluster(client: RawClient, data_dir: Path) -> Iterator[Step]:
    for version in range(3):
        yield (
            f"cluster v{version}",
            m.DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=True),
            version,
        )
    for kind in (2, 9):
        yield f"cluster by endpoint {kind}", m.DescribeClusterRequest(endpoint_type=kind), 1
    directory = m.DescribeLogDirsRequest.DescribableLogDirTopic
    for version in range(1, 6):
        asked = [directory(topic="two", partitions=[0, 1, 9]), directory(topic="gone", partitions=[0])]
        yield f"log dirs v{version}", m.DescribeLogDirsRequest(topics=asked), version
    yield "log dirs of nothing", m.DescribeLogDirsRequest(topics=[]), 5
    moved = m.AlterReplicaLogDirsRequest
    for what, path, name, index in (
        ("nowhere", "/nowhere", "two", 0),
        ("a relative path", "data", "two", 0),
        ("where it is", str(data_dir), "two", 0),
        ("where it is", str(data_dir), "two", 9),
        ("where it is", str(data_dir), "gone", 0),
    ):
        asked_topic = moved.AlterReplicaLogDirTopic(name=name, partitions=[index])
        for version in (1, 2):
            request = moved(dirs=[moved.AlterReplicaLogDir(path=path, topics=[asked_topic])])
            yield f"move {name}-{index} to {what} v{version}", request, version
    quorum = m.DescribeQuorumRequest
    other = quorum.TopicData(topic_name="two", partitions=[quorum.PartitionData(partition_index=0)])
    yield "quorum of another topic", quorum(topics=[other]), 2
    yield "quorum of nothing", quorum(topics=[]), 2
    yield "unregister a stranger", m.UnregisterBrokerRequest(broker_id=9), 0


def _features(client: RawClient, data_dir: Path) -> Iterator[Step]:
    update = m.UpdateFeaturesRequest.FeatureUpdateKey
    for version in (1, 2):
        for name, level, kind in (
            ("nope", 1, 1),
            ("group.version", 1, 1),
            ("group.version", 9, 1),
            ("group.version", 0, 1),
            ("group.version", 0, 2),
            ("group.version", 1, 9),
            ("group.version", -1, 1),
            ("metadata.version", 99, 1),
        ):
            asked = [update(feature=name, max_version_level=level, upgrade_type=kind)]
            request = m.UpdateFeaturesRequest(feature_updates=asked, validate_only=True, timeout_ms=5000)
            yield f"{name} to {level} by {kind} v{version}", request, version
    yield "no feature", m.UpdateFeaturesRequest(feature_updates=[], validate_only=True, timeout_ms=5000), 2


def _security(client: RawClient, data_dir: Path) -> Iterator[Step]:
    for version in (1, 2, 3):
        anything = {"operation": 1, "permission_type": 1}
        yield (
            f"acls v{version}",
            m.DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, **anything),
            version,
        )
        creation = m.CreateAclsRequest.AclCreation(
            resource_type=2, resource_name="two", principal="User:a", host="*", operation=3, permission_type=3
        )
        yield f"create acls v{version}", m.CreateAclsRequest(creations=[creation] * 2), version
        chosen = m.DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=1, pattern_type_filter=1, **anything)
        yield f"delete acls v{version}", m.DeleteAclsRequest(filters=[chosen]), version
    component = m.DescribeClientQuotasRequest.ComponentData
    for parts in ([("user", 0)], [("zzz", 0)], [("user", 9)], [("user", 0), ("ip", 0)]):
        asked = [component(entity_type=kind, match_type=match, match="a") for kind, match in parts]
        yield f"quotas of {parts}", m.DescribeClientQuotasRequest(components=asked, strict=True), 1
    yield "quotas", m.DescribeClientQuotasRequest(components=[], strict=False), 1
    user = m.DescribeUserScramCredentialsRequest.UserName
    yield "users", m.DescribeUserScramCredentialsRequest(users=None), 0
    some = [user(name="a"), user(name="b"), user(name="b"), user(name="")]
    yield "some users", m.DescribeUserScramCredentialsRequest(users=some), 0
    deletion = m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="a", mechanism=1)
    yield "delete a user", m.AlterUserScramCredentialsRequest(deletions=[deletion]), 0
    for version in range(3):
        request = m.ListTransactionsRequest(state_filters=["Ongoing", "Foo"])
        yield f"transactions v{version}", request, version
    for producer_id, epoch in ((-1, 3), (7, -1)):
        request = m.InitProducerIdRequest(transactional_id=None, producer_id=producer_id, producer_epoch=epoch)
        yield f"producer {producer_id}/{epoch}", request, 5
    yield "producer with an empty name", m.InitProducerIdRequest(transactional_id=""), 5


def _deletion(client: RawClient, data_dir: Path) -> Iterator[Step]:
    state = m.DeleteTopicsRequest.DeleteTopicState

    def by_name(version: int, *names: str, timeout_ms: int = 20_000) -> tuple[Message, int]:
        return m.DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms), version

    asked = [
        state(name="gone"),
        state(name=None, topic_id=UNKNOWN_ID),
        state(name="e", topic_id=UNKNOWN_ID),
        state(name=None),
        state(name="two"),
        state(name="two"),
    ]
    yield "delete in strange ways", m.DeleteTopicsRequest(topics=asked, timeout_ms=20_000), 6
    yield "delete in no time", *by_name(5, "two", timeout_ms=0)
    yield "delete the same twice", *by_name(5, "two", "two")
    for version, name in ((1, "one"), (2, "e"), (5, "a.b")):
        yield f"delete v{version}", *by_name(version, "gone", "a/b", name)
    known = client.call(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="two")]), 12)
    by_id = [state(name=None, topic_id=known.topics[0].topic_id)]
    yield "delete by id", m.DeleteTopicsRequest(topics=by_id, timeout_ms=20_000), 6
    yield "what is left", m.MetadataRequest(topics=None), 12


def record() -> None:
    from tests.support.kafka_peer import KafkaPeer

    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaPeer(Path(folder), PROPERTIES) as kafka,
        RawClient.to(kafka.bootstrap) as client,
    ):
        answers = transcript(client, kafka.data_dir, KAFKA_PAUSE_S)
    RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(record())
