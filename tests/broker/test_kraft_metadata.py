"""Topic settings are read from the metadata log that a Kafka leaves behind."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from ottla.broker.controller.kraft_metadata import FOLDER, topic_configs
from ottla.common.ids import TopicId
from ottla.protocol.codec import write_uvarint
from ottla.records.record import Record, build_batch
from ottla.testing import Broker
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

FIRST, SECOND = TopicId(b"1" * 16), TopicId(b"2" * 16)


def text(value: str | None) -> bytes:
    out = bytearray()
    write_uvarint(out, 0 if value is None else len(value) + 1)
    return bytes(out) + (value or "").encode()


def topic(name: str, topic_id: TopicId) -> bytes:
    return bytes([1, 2, 0]) + text(name) + topic_id + b"\0"


def config(name: str, key: str, value: str | None, kind: int = 2) -> bytes:
    return bytes([1, 4, 0, kind]) + text(name) + text(key) + text(value) + b"\0"


def removal(topic_id: TopicId) -> bytes:
    return bytes([1, 9, 0]) + topic_id + b"\0"


def write(path: Path, first: int, *values: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    batches = [build_batch([Record(first + index, 0, None, value)]) for index, value in enumerate(values)]
    path.write_bytes(b"".join(batches))


def test_settings_are_replayed_in_order(tmp_path: Path) -> None:
    write(
        tmp_path / FOLDER / "00000000000000000000.log",
        0,
        topic("a", FIRST),
        bytes([1, 3, 0, 0, 0]),  # a partition's record, which says nothing about settings
        config("a", "cleanup.policy", "compact"),
        config("a", "flush.ms", "5"),
        config("a", "flush.ms", None),
        config("1", "log.flush.ms", "9", kind=4),
    )
    assert topic_configs(tmp_path) == {FIRST: {"cleanup.policy": "compact"}}


def test_a_topic_that_was_made_again_does_not_inherit(tmp_path: Path) -> None:
    write(
        tmp_path / FOLDER / "00000000000000000000.log",
        0,
        topic("a", FIRST),
        config("a", "cleanup.policy", "compact"),
        removal(FIRST),
        topic("a", SECOND),
    )
    assert topic_configs(tmp_path) == {SECOND: {}}


def test_a_checkpoint_stands_for_the_log_before_it(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    write(folder / "00000000000000000002-0000000001.checkpoint", 0, topic("old", SECOND))
    write(folder / "00000000000000000003-0000000001.checkpoint", 0, topic("a", FIRST), config("a", "x", "1"))
    write(folder / "00000000000000000000.log", 0, removal(FIRST), removal(FIRST), removal(FIRST), config("a", "y", "2"))
    assert topic_configs(tmp_path) == {FIRST: {"x": "1", "y": "2"}}


@pytest.mark.parametrize("garbage", [b"", b"\0" * 100, b"\xff" * 100])
def test_what_is_not_a_metadata_log_tells_nothing(tmp_path: Path, garbage: bytes) -> None:
    assert topic_configs(tmp_path) == {}
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "00000000000000000000.log").write_bytes(garbage)
    assert topic_configs(tmp_path) == {}
    write(tmp_path / FOLDER / "00000000000000000000.log", 0, bytes([9, 9, 9]), b"\x01")
    assert topic_configs(tmp_path) == {}


@pytest.mark.jvm
@pytest.mark.xdist_group("kafka-peer")
def test_topics_of_a_real_kafka_go_on_here(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        compacted = NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"})
        for future in admin.create_topics([NewTopic("plain", 2, 1), compacted]).values():
            future.result(30)
        produce(kafka.bootstrap, [b"from kafka"])
        time.sleep(0.5)
        kafka.stop()
    with Broker({"ottla.adopt.logs": "true", "node.id": "1"}, data_dir=kafka.data_dir) as broker:
        produce(broker.bootstrap_servers, [b"from ottla"])
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["plain"])
        values = [message.value() for message in consumer.consume(2, 20)]
        consumer.close()
        assert values == [b"from kafka", b"from ottla"]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (future,) = admin.describe_configs([ConfigResource("topic", "compacted")]).values()
        assert future.result(30)["cleanup.policy"].value == "compact"


def produce(bootstrap: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce("plain", value, partition=0)
    assert producer.flush(30) == 0
