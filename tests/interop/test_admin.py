"""The admin clients of confluent-kafka, kafka-python and aiokafka manage topics, offsets and the cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin import RecordsToDelete as AioRecordsToDelete
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from kafka import TopicPartition as PyTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PyNewTopic
from kafka.errors import TopicAlreadyExistsError

from ottla.testing import Broker

pytestmark = pytest.mark.xdist_group("python-clients")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def name() -> str:
    return f"admin-{next(_numbers)}"


@pytest.fixture(scope="module")
def fill(bootstrap: str) -> Callable[..., None]:
    """`fill(topic, 5)`: five records in partition 0, a second apart from 1,000 s on."""

    def write(topic: str, count: int) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=0, timestamp=(1_000 + number) * 1_000)
        assert producer.flush(20) == 0

    return write


class TestConfluent:
    @pytest.fixture
    def admin(self, bootstrap: str) -> AdminClient:
        return AdminClient({"bootstrap.servers": bootstrap})

    def done(self, futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        return future.result(20)

    def refused(self, futures: dict[Any, Any]) -> str:
        with pytest.raises(KafkaException) as error:
            self.done(futures)
        code: str = error.value.args[0].name()
        return code

    def test_a_topic_from_birth_to_death(self, admin: AdminClient, name: str) -> None:
        self.done(admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "-1"})]))
        assert self.refused(admin.create_topics([NewTopic(name, 2, 1)])) == "TOPIC_ALREADY_EXISTS"
        described = self.done(admin.describe_topics(TopicCollection([name]), include_authorized_operations=True))
        assert len(described.partitions) == 2
        assert described.authorized_operations
        self.done(admin.create_partitions([NewPartitions(name, 5)]))
        assert len(admin.list_topics(name, timeout=20).topics[name].partitions) == 5
        self.done(admin.delete_topics([name]))
        assert name not in admin.list_topics(timeout=20).topics

    def test_refusals_carry_kafkas_codes(self, admin: AdminClient, name: str) -> None:
        assert self.refused(admin.create_topics([NewTopic(name, 1, 3)])) == "INVALID_REPLICATION_FACTOR"
        assert self.refused(admin.create_topics([NewTopic(name, 20_000, 1)])) == "POLICY_VIOLATION"
        assert self.refused(admin.create_topics([NewTopic("no/good", 1, 1)])) == "TOPIC_EXCEPTION"
        assert self.refused(admin.create_topics([NewTopic(name, 1, 1, config={"x": "y"})])) == "INVALID_CONFIG"
        assert self.refused(admin.delete_topics([name])) == "UNKNOWN_TOPIC_OR_PART"
        assert self.refused(admin.create_partitions([NewPartitions(name, 5)])) == "UNKNOWN_TOPIC_OR_PART"

    def test_offsets_by_kind_and_time(self, admin: AdminClient, name: str, fill: Callable[..., None]) -> None:
        self.done(admin.create_topics([NewTopic(name, 1, 1, config={"retention.ms": "-1"})]))
        fill(name, 5)
        tp = TopicPartition(name, 0)
        wanted = {
            OffsetSpec.earliest(): 0,
            OffsetSpec.latest(): 5,
            OffsetSpec.max_timestamp(): 4,
            OffsetSpec.for_timestamp(1_002_000): 2,
            OffsetSpec.for_timestamp(1_002_001): 3,
            OffsetSpec.for_timestamp(9_999_000): -1,
        }
        for spec, offset in wanted.items():
            assert self.done(admin.list_offsets({tp: spec})).offset == offset
        assert self.done(admin.delete_records([TopicPartition(name, 0, 3)])).low_watermark == 3
        assert self.done(admin.list_offsets({tp: OffsetSpec.earliest()})).offset == 3

    def test_the_cluster(self, admin: AdminClient, bootstrap: str) -> None:
        cluster = admin.describe_cluster().result(20)
        (node,) = cluster.nodes
        assert f"{node.host}:{node.port}" == bootstrap
        assert cluster.cluster_id == admin.list_topics(timeout=20).cluster_id

    def test_acls_are_refused_as_by_a_kafka_without_an_authorizer(self, admin: AdminClient) -> None:
        binding = AclBinding(
            ResourceType.TOPIC,
            "t",
            ResourcePatternType.LITERAL,
            "User:u",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        assert self.refused(admin.create_acls([binding])) == "SECURITY_DISABLED"

    def test_a_topic_is_created_when_a_producer_asks_for_it(self, bootstrap: str, name: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(name, b"first")
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest"})
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=20) == (0, 1)
        consumer.close()


class TestKafkaPython:
    @pytest.fixture
    def admin(self, bootstrap: str) -> Iterator[KafkaAdminClient]:
        client = KafkaAdminClient(bootstrap_servers=bootstrap)
        yield client
        client.close()

    def test_a_topic_from_birth_to_death(self, admin: KafkaAdminClient, name: str, fill: Callable[..., None]) -> None:
        admin.create_topics([PyNewTopic(name, 2, 1)])
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([PyNewTopic(name, 2, 1)])
        (described,) = admin.describe_topics([name])
        assert len(described["partitions"]) == 2
        admin.create_partitions({name: 3})
        fill(name, 4)
        admin.delete_records({PyTopicPartition(name, 0): 2})
        assert name in admin.list_topics()
        admin.delete_topics([name])
        assert name not in admin.list_topics()

    def test_what_a_cluster_can_be_asked(self, admin: KafkaAdminClient, name: str, fill: Callable[..., None]) -> None:
        admin.create_topics([PyNewTopic(name, 1, 1)])
        fill(name, 2)
        assert len(admin.describe_cluster()["brokers"]) == 1
        assert name in str(admin.describe_log_dirs())
        assert name in str(admin.describe_topic_partitions([name]))
        assert "metadata.version" in str(admin.describe_features())
        assert admin.describe_metadata_quorum()
        assert "producer_id" in str(admin.describe_producers([PyTopicPartition(name, 0)]))
        assert 1 in admin.list_transactions()
        assert not admin.list_partition_reassignments()


class TestAiokafka:
    async def test_a_topic_from_birth_to_death(self, bootstrap: str, name: str, fill: Callable[..., None]) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            created = await admin.create_topics([AioNewTopic(name, 2, 1)])
            assert created.topic_errors[0][1] == 0
            grown = await admin.create_partitions({name: AioNewPartitions(3)})
            assert grown.topic_errors[0][1] == 0
            (described,) = await admin.describe_topics([name])
            assert len(described["partitions"]) == 3
            fill(name, 4)
            tp = AioTopicPartition(name, 0)
            assert await admin.delete_records({tp: AioRecordsToDelete(before_offset=3)}) == {tp: 3}
            assert len((await admin.describe_cluster())["brokers"]) == 1
            deleted = await admin.delete_topics([name])
            assert deleted.topic_error_codes[0][1] == 0
            assert name not in await admin.list_topics()
        finally:
            await admin.close()
