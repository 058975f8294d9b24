"""How large records are at some places, over the wire."""

from __future__ import annotations

import confluent_kafka
import pytest

pytest.importorskip("pyarrow")

from ottla.client.admin.log_sizes import average_bytes
from ottla.client.lookup import LATEST, ClusterReader
from ottla.client.sampling import look_at, measured
from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.records.record import Record, build_batch
from ottla.testing import Broker


def produce(broker: Broker, topic: str, partition: int, size: int, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": 2_000_000})
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=partition)
    assert producer.flush(30) == 0


def test_places_of_several_partitions(broker: Broker, make_topic: object) -> None:
    """Batches of nearly 1 MB: an answer has room for all of them, but promises only the first a whole one."""
    topic = make_topic(partitions=3)  # type: ignore[operator]
    for partition in range(3):
        produce(broker, topic, partition, 1_000, 900)
        produce(broker, topic, partition, 100_000, 30)
    partitions = [TopicPartition(topic, index) for index in range(3)]
    with ClusterReader(ClientSettings(broker.bootstrap_servers)) as reader:
        ends = reader.offsets(dict.fromkeys(partitions, LATEST))
        positions = [(one, at) for one in partitions for at in (0, 450, 900, ends[one] - 1)]
        found = look_at(reader, positions)
    assert set(found) == set(positions)
    for (_, at), sample in found.items():
        assert sample.start == at < sample.end
        assert sample.bytes_per_offset >= (1_000 if at < 900 else 100_000)
        assert sample.bytes_per_offset < 200_000


def test_what_is_not_there_is_left_out(broker: Broker, make_topic: object) -> None:
    topic = make_topic()  # type: ignore[operator]
    produce(broker, topic, 0, 10, 5)
    there, absent = TopicPartition(topic, 0), TopicPartition(topic, 7)
    with ClusterReader(ClientSettings(broker.bootstrap_servers)) as reader:
        assert look_at(reader, [(there, 500)]) == {}
        assert look_at(reader, [(absent, 0)]) == {}
        assert set(look_at(reader, [(there, 2)])) == {(there, 2)}


def test_whole_batches_count_and_a_cut_one_does_not() -> None:
    small = bytes(build_batch([Record(offset, 0, None, b"x") for offset in range(10)]))
    large = bytes(build_batch([Record(10, 0, None, b"x" * 500)]))
    size = len(small) + len(large)
    assert measured(small + large + small[:40], 3) == (3, 11, size, size / 11)
    assert measured(small[:40], 3) is None
    assert measured(b"", 3) is None


def test_the_average_over_a_log(broker: Broker, make_topic: object) -> None:
    topic = make_topic(partitions=2)  # type: ignore[operator]
    produce(broker, topic, 0, 1_000, 300)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with ClusterReader(ClientSettings(broker.bootstrap_servers)) as reader:
        found = average_bytes(reader, [full, empty])
        assert set(found) == {full}
        assert 1_000 < found[full] < 1_100
        assert average_bytes(reader, [TopicPartition(topic, 5)]) == {}
