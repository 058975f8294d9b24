"""Transactions of ready-made batches: all or nothing, fenced, at both protocol levels, through a broker's crash."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Assigned

from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.cluster import ClusterClient, Unreachable
from ottla.client.producing import Committed, ProducerFenced, TransactionalProducer, TransactionRefused
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure
from ottla.common.ids import TopicPartition
from ottla.kernel.encode import BatchEncoder
from ottla.protocol.messages import UpdateFeaturesRequest
from ottla.testing import Broker
from tests.support.brokers import OttlaProcess
from tests.support.proxy import Proxy

OUT = "out"


def batch(*values: bytes) -> bytes:
    encoder = BatchEncoder(codec=3)
    count = len(values)
    encoder.append(
        array("i", [0] * count),
        pa.nulls(count, pa.binary()),
        pa.array(values, pa.binary()),
        None,
        pa.array([1_700_000_000_000] * count, pa.int64()),
    )
    return encoder.finish()[0][1]


def committed_values(bootstrap: str, topic: str, partitions: int = 2, **settings: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False, **settings}
    )  # fmt: skip
    consumer.assign([Assigned(topic, number, 0) for number in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(20)
        assert message is not None, "the broker stays silent"
        if message.error():
            ended += 1
        else:
            found.append(message.value())
    consumer.close()
    return found


@pytest.fixture(params=[2, 1], ids=["transactions v2", "transactions v1"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    with Broker() as running:
        running.create_topic(OUT, 2)
        running.create_topic("in", 1)
        with ClusterClient(running.bootstrap_servers) as cluster:
            key = UpdateFeaturesRequest.FeatureUpdateKey
            update = key(feature="transaction.version", max_version_level=request.param, upgrade_type=2)
            cluster.any_broker().call(UpdateFeaturesRequest(timeout_ms=5_000, feature_updates=[update]))
        yield running.bootstrap_servers


@pytest.fixture
def producer(bootstrap: str) -> Iterator[TransactionalProducer]:
    with ClusterClient(bootstrap) as cluster:
        made = TransactionalProducer(cluster, "writer", retry_timeout_s=10)
        made.start()
        yield made
        made.close()


def test_what_is_committed_is_there_and_what_is_aborted_is_not(bootstrap: str, producer: TransactionalProducer) -> None:
    for number, ends in enumerate((producer.commit, producer.abort, producer.commit)):
        producer.begin()
        producer.produce((TopicPartition(OUT, one % 2), batch(b"%d-%d" % (number, one))) for one in range(20))
        producer.commit_offsets("group", {TopicPartition("in", 0): Committed(number, f"note {number}")})
        ends()
    assert sorted(committed_values(bootstrap, OUT)) == sorted(b"%d-%d" % (n, one) for n in (0, 2) for one in range(20))
    with ClusterClient(bootstrap) as cluster:
        assert committed_offsets(cluster, "group") == {TopicPartition("in", 0): Committed(2, "note 2")}


def test_a_second_producer_of_the_name_shuts_the_first_out(bootstrap: str, producer: TransactionalProducer) -> None:
    producer.begin()
    producer.produce([(TopicPartition(OUT, 0), batch(b"first"))])
    with ClusterClient(bootstrap) as cluster:
        second = TransactionalProducer(cluster, "writer")
        second.start()
        with pytest.raises(TransactionRefused, match="or another writer has taken over") as refused:
            producer.produce([(TopicPartition(OUT, 1), batch(b"late"))])
            producer.commit()
        assert refused.value.failure is Failure.EPOCH
        with pytest.raises(ProducerFenced, match="another writer has taken over 'writer'"):
            producer.abort()
        second.begin()
        second.produce([(TopicPartition(OUT, 0), batch(b"second"))])
        second.commit()
    assert committed_values(bootstrap, OUT) == [b"second"]


def test_offsets_of_a_group_that_nobody_knows_are_none(bootstrap: str) -> None:
    with ClusterClient(bootstrap) as cluster:
        assert committed_offsets(cluster, "nobody") == {}


def test_a_missing_topic_and_a_missing_broker_are_told_in_one_sentence(
    bootstrap: str, producer: TransactionalProducer
) -> None:
    producer.begin()
    with pytest.raises(OttlaError, match="there is no topic 'nowhere'"):
        producer.produce([(TopicPartition("nowhere", 0), batch(b"lost"))])
        producer.commit()
    unreachable = TransactionalProducer(ClusterClient("127.0.0.1:1"), "writer", retry_timeout_s=0.1)
    with pytest.raises(Unreachable, match=r"cannot reach any broker at 127.0.0.1:1"):
        unreachable.start()


def test_a_transaction_goes_on_when_the_broker_is_killed_in_its_middle(ottla_process: OttlaProcess) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": ottla_process.bootstrap})
    admin.create_topics([NewTopic(OUT, 2)])[OUT].result()
    with ClusterClient(ottla_process.bootstrap) as cluster:
        producer = TransactionalProducer(cluster, "writer")
        producer.start()
        expected = []
        for number in range(6):
            producer.begin()
            for part in range(3):
                values = [b"%d-%d-%d" % (number, part, one) for one in range(20)]
                producer.produce((TopicPartition(OUT, at % 2), batch(value)) for at, value in enumerate(values))
                expected += values
                if (number, part) in ((1, 0), (2, 1), (4, 2)):
                    ottla_process.restart(kill=True)
            producer.commit()
        producer.close()
    assert sorted(committed_values(ottla_process.bootstrap, OUT)) == sorted(expected)


def test_answers_that_are_lost_late_doubled_and_out_of_order_lose_no_record() -> None:
    with Proxy(seed=5) as proxy, Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        proxy.target = int(broker.bootstrap_servers.rpartition(":")[2])
        broker.create_topic(OUT, 2)
        # An answer that does not come is given up soon: the proxy keeps some.
        with ClusterClient(proxy.address, timeout_s=0.5) as cluster:
            producer = TransactionalProducer(cluster, "writer")
            producer.start()
            proxy.lose_produce_answers(0.05)
            proxy.mix_up_produce_answers(0.1)
            expected = []
            for number in range(5):
                producer.begin()
                values = [b"%d-%d" % (number, one) for one in range(24)]
                producer.produce((TopicPartition(OUT, at % 2), batch(value)) for at, value in enumerate(values))
                producer.commit()
                expected += values
            producer.close()
        assert proxy.lost and proxy.mixed_up
        assert sorted(committed_values(broker.bootstrap_servers, OUT)) == sorted(expected)
