"""confluent-kafka, kafka-python, aiokafka and kcat against one broker: what one writes, all the others read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.records.batch import read_header
from ottla.records.record import iterate_batches
from ottla.testing import Broker
from tests.support.python_clients import CODECS, LIBRARIES, Got, Sent, library
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.xdist_group("python-clients")

MakeTopic = Callable[..., str]
EVERY = list(LIBRARIES)
# kcat takes no timestamp and one record per run.
LIBRARIES_PROPER = [name for name in EVERY if name != "kcat"]

HEADERS = (("trace", b"1"), ("trace", b"2"), ("grüße", b"\xc3\xbc"), ("empty", b""))
NULL_HEADER = Sent(b"null header", b"v", (("nothing", None),))
RECORDS = [
    Sent(b"key", b"value"),
    Sent(None, b"no key"),
    Sent(b"no value", None),
    Sent(b"empty value", b""),
    Sent(None, b"with headers", HEADERS),
    NULL_HEADER,
    Sent("schlüssel".encode(), "größe 漢字 🎉".encode()),
    Sent(b"compressible", b"abcdefgh" * 5_000),
]


@pytest.fixture(scope="module")
def written(broker: Broker) -> Iterator[dict[tuple[str, str], str]]:
    """A topic for each (client, codec) that was asked for, filled by that client once."""
    yield {}


def records_for(writer: str) -> list[Sent]:
    # The protocol has null headers; kafka-python does not send them.
    return [one for one in RECORDS if one is not NULL_HEADER or writer != "kafka-python"]


def topic_by(writer: str, codec: str, broker: Broker, written: dict[tuple[str, str], str]) -> str:
    if (writer, codec) not in written:
        topic = f"by-{writer}-{codec}"
        broker.create_topic(topic)
        library(writer, broker.bootstrap_servers).send(topic, records_for(writer), codec)
        written[writer, codec] = topic
    return written[writer, codec]


def contents(found: list[Got]) -> list[Sent]:
    return [Sent(one.key, one.value, one.headers, one.partition) for one in found]


@pytest.mark.parametrize("reader", EVERY)
@pytest.mark.parametrize("writer", EVERY)
def test_what_one_client_writes_another_reads_in_each_codec(
    broker: Broker, written: dict[tuple[str, str], str], writer: str, reader: str
) -> None:
    reading = library(reader, broker.bootstrap_servers)
    for codec in CODECS:
        topic = topic_by(writer, codec, broker, written)
        sent = records_for(writer)
        found = reading.read(topic, len(sent))
        assert [one.offset for one in found] == list(range(len(sent)))
        assert contents(found) == sent


@pytest.mark.parametrize("writer", EVERY)
@pytest.mark.parametrize("codec", CODECS)
def test_the_codec_a_client_was_told_to_use_is_what_is_stored(
    broker: Broker, client: RawClient, written: dict[tuple[str, str], str], writer: str, codec: str
) -> None:
    records = client.fetch(topic_by(writer, codec, broker, written)).records
    used = {header.codec for _, header in iterate_batches(records)}
    # A client may send what does not get smaller as it is.
    assert CODECS.index(codec) in used and used <= {0, CODECS.index(codec)}


def test_keyed_records_go_to_the_same_partition_whoever_sends_them(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=6)
    keys = [f"customer-{number}".encode() for number in range(12)] + [b"", "ü".encode()]
    for name in EVERY:
        # librdkafka hashes an empty key as if there were none; kcat cannot be given one.
        sent = [Sent(key, b"v", partition=None) for key in keys if key]
        library(name, broker.bootstrap_servers).send(topic, sent)
    reading = library("confluent-kafka", broker.bootstrap_servers)
    found = reading.read(topic, 13 * len(EVERY), partitions=range(6))
    assert len(found) == 13 * len(EVERY)
    homes: dict[bytes | None, set[int]] = {}
    for one in found:
        homes.setdefault(one.key, set()).add(one.partition)
    assert all(len(partitions) == 1 for partitions in homes.values()), homes
    assert len({partition for partitions in homes.values() for partition in partitions}) > 1


@pytest.mark.parametrize("name", EVERY)
def test_records_of_five_megabytes(broker: Broker, make_topic: MakeTopic, name: str) -> None:
    topic = make_topic(max_message_bytes=10_000_000)
    client = library(name, broker.bootstrap_servers)
    large = b"0123456789" * 500_000
    client.send(topic, [Sent(b"a", large), Sent(b"b", b"small"), Sent(b"c", large)])
    found = client.read(topic, 3)
    assert [(one.key, len(one.value or b"")) for one in found] == [(b"a", 5_000_000), (b"b", 5), (b"c", 5_000_000)]
    assert found[0].value == large


@pytest.mark.parametrize("name", EVERY)
def test_a_record_that_is_too_large_is_an_error_to_the_client(broker: Broker, make_topic: MakeTopic, name: str) -> None:
    client = library(name, broker.bootstrap_servers)
    with pytest.raises(Exception, match=r"(?i)(too.?large|too.?big|max\.message\.bytes|MSG_SIZE)"):
        client.send(make_topic(), [Sent(b"a", bytes(3_000_000))])


@pytest.mark.parametrize("name", EVERY)
def test_idempotent_producers(broker: Broker, client: RawClient, make_topic: MakeTopic, name: str) -> None:
    topic = make_topic()
    sending = library(name, broker.bootstrap_servers)
    count = 3 if name == "kcat" else 300
    sending.send(topic, [Sent(None, b"%d" % number) for number in range(count)], idempotent=True)
    assert [one.value for one in client.read_all(topic)] == [b"%d" % number for number in range(count)]
    records = client.fetch(topic).records
    assert all(header.producer_id >= 0 and header.base_sequence >= 0 for _, header in iterate_batches(records))
    assert read_header(records).producer_epoch == 0


def test_producer_ids_differ_between_clients(broker: Broker, client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for name in LIBRARIES_PROPER:
        library(name, broker.bootstrap_servers).send(topic, [Sent(None, b"x")], idempotent=True)
    headers = [header for _, header in iterate_batches(client.fetch(topic).records)]
    assert len({header.producer_id for header in headers}) == len(LIBRARIES_PROPER)


@pytest.mark.parametrize("name", EVERY)
def test_records_without_keys_are_refused_by_a_compacted_topic(
    broker: Broker, client: RawClient, make_topic: MakeTopic, name: str
) -> None:
    topic = make_topic(cleanup_policy="compact")
    sending = library(name, broker.bootstrap_servers)
    # aiokafka does not know the code and says UnknownError.
    with pytest.raises(Exception, match=r"(?i)invalid.?record|failed to validate|unknownerror"):
        sending.send(topic, [Sent(None, b"keyless")])
    sending.send(topic, [Sent(b"key", b"value"), Sent(b"key", None)])
    assert [one.value for one in client.read_all(topic)] == [b"value", None]


@pytest.mark.parametrize("name", EVERY)
def test_a_topic_that_is_not_there_is_made(broker: Broker, name: str) -> None:
    topic = f"made-by-{name}"
    client = library(name, broker.bootstrap_servers)
    client.send(topic, [Sent(b"k", b"v")])
    assert [one.value for one in client.read(topic, 1)] == [b"v"]


@pytest.mark.parametrize("name", LIBRARIES_PROPER)
def test_a_restart_in_the_middle(name: str) -> None:
    """The producer retries, the consumer reconnects: all records once and in order."""
    with Broker() as broker:
        broker.create_topic("orders")
        client = library(name, broker.bootstrap_servers)
        found: list[Got] = []
        reader = threading.Thread(target=lambda: found.extend(client.read("orders", 600)))
        reader.start()
        for part in range(3):
            client.send("orders", [Sent(None, b"%d" % number) for number in range(part * 200, part * 200 + 200)])
            broker.restart()
        reader.join(40)
        assert [one.value for one in found] == [b"%d" % number for number in range(600)]


@pytest.mark.parametrize("name", EVERY)
def test_seek_by_time(broker: Broker, make_topic: MakeTopic, name: str) -> None:
    topic = make_topic()
    start = int(time.time() * 1000) - 100_000
    records = [Sent(None, b"%d" % number, timestamp=start + 1000 * number) for number in range(20)]
    library("confluent-kafka", broker.bootstrap_servers).send(topic, records)
    client = library(name, broker.bootstrap_servers)
    assert client.offset_at(topic, start) == 0
    assert client.offset_at(topic, start + 5000) == 5
    assert client.offset_at(topic, start + 5001) == 6
    assert client.offset_at(topic, start + 19_000) == 19
    after_the_end = client.offset_at(topic, start + 99_000)
    # librdkafka gives the end of the log where the others give nothing.
    assert after_the_end in (None, 20)


def test_delete_records(broker: Broker, make_topic: MakeTopic) -> None:
    from confluent_kafka import TopicPartition as ConfluentPartition
    from confluent_kafka.admin import AdminClient
    from kafka.admin import KafkaAdminClient
    from kafka.structs import TopicPartition

    topic = make_topic()
    sending = library("confluent-kafka", broker.bootstrap_servers)
    sending.send(topic, [Sent(None, b"%d" % number) for number in range(10)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    ((_, future),) = admin.delete_records([ConfluentPartition(topic, 0, 4)]).items()
    assert future.result(20).low_watermark == 4
    other = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    other.delete_records({TopicPartition(topic, 0): 6})
    other.close()
    for name in EVERY:
        found = library(name, broker.bootstrap_servers).read(topic, 4, offset=6)
        assert [one.offset for one in found] == [6, 7, 8, 9]
