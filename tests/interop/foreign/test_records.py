"""What one client writes, every client reads: all codecs, headers, null keys and values, times, sizes, partitions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from tests.interop.foreign.clients import Client, Sent
from tests.interop.foreign.topics import create_topic
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]
CLIENTS = ["java", "kafkajs", "franz-go", "confluent"]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
LARGE_BYTES = 5_000_000

# kafkajs cannot write a header without a value, and sorts repeated headers together, so these are separate records.
RECORDS = [
    Sent(b"key", b"value", (("name", b"content"), ("again", b"1"), ("again", b"2"))),
    Sent(None, b"a record without a key"),
    Sent(b"a tombstone", None),
    Sent(b"", b"", (("empty", b""),)),
    Sent("schlüssel".encode(), "wert ✓ ".encode() * 500, (("größe", "höhe".encode()),)),
]
NULL_HEADER = Sent(b"key", b"value", (("none", None), ("some", b"x")))


def records_for(client: str) -> list[Sent]:
    return RECORDS if client == "kafkajs" else [*RECORDS, NULL_HEADER]


Written = Callable[[BrokerProcess, str], str]


@pytest.fixture(scope="module")
def written(clients: Callable[[str], Client]) -> Written:
    """The topic on that broker into which that client has written its records with each codec in turn."""
    topics: dict[tuple[str, str], str] = {}

    def topic_of(broker: BrokerProcess, producer: str) -> str:
        client = clients(producer)
        if (broker.bootstrap, producer) not in topics:
            topic = create_topic(broker, f"written-by-{producer}")
            for codec in CODECS:
                client.produce(broker.bootstrap, topic, records_for(producer), codec)
            topics[broker.bootstrap, producer] = topic
        return topics[broker.bootstrap, producer]

    return topic_of


@pytest.mark.parametrize("consumer", CLIENTS)
@pytest.mark.parametrize("producer", CLIENTS)
def test_every_client_reads_what_every_client_wrote_with_each_codec(
    broker: BrokerProcess, clients: Callable[[str], Client], written: Written, producer: str, consumer: str
) -> None:
    reader = clients(consumer)
    topic = written(broker, producer)
    expected = [(one.key, one.value, one.headers) for one in records_for(producer)] * len(CODECS)
    seen = reader.consume(broker.bootstrap, topic, len(expected))
    assert [one.content for one in seen] == expected
    assert [one.offset for one in seen] == list(range(len(expected)))
    assert all(abs(one.timestamp - time.time() * 1000) < 600_000 for one in seen)


def test_the_same_key_goes_to_the_same_partition_from_every_client(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str
) -> None:
    keys = [f"key-{number}".encode() * (number % 4 + 1) for number in range(40)]
    create_topic(broker, name, partitions=7)
    expected = [_murmur2(key) % 7 for key in keys]
    produced, skipped = 0, []
    for client_name in CLIENTS:
        try:
            client = clients(client_name)
        except pytest.skip.Exception:
            skipped.append(client_name)
            continue
        client.produce(broker.bootstrap, name, [Sent(key, client_name.encode()) for key in keys])
        produced += len(keys)
        seen = clients("confluent").consume(broker.bootstrap, name, produced)
        where = {one.key: one.partition for one in seen if one.value == client_name.encode()}
        assert [where[key] for key in keys] == expected, f"{client_name} partitions keys in its own way"
    if len(skipped) == len(CLIENTS) - 1:
        pytest.skip(f"no client but confluent-kafka is available: {', '.join(skipped)}")


def _murmur2(key: bytes) -> int:
    """The positive hash by which Kafka's clients choose a partition."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(key)) & mask
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if key[whole:]:
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


@pytest.mark.parametrize("client", CLIENTS)
def test_a_consumer_starts_where_a_time_says(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, client: str
) -> None:
    reader = clients(client)
    create_topic(broker, name, partitions=2)
    start_ms = int(time.time() * 1000) - 60_000
    records = [Sent(None, b"%d" % n, partition=n % 2, timestamp=start_ms + n * 1000) for n in range(20)]
    clients("confluent").produce(broker.bootstrap, name, records)
    seen = reader.consume(broker.bootstrap, name, 8, from_ms=start_ms + 11_500)
    assert sorted(int(one.value or b"") for one in seen) == list(range(12, 20))


@pytest.mark.parametrize("client", CLIENTS)
def test_records_of_several_megabytes_pass_where_the_topic_allows_them(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, client: str
) -> None:
    subject = clients(client)
    create_topic(broker, name, config={"max.message.bytes": "10000000"})
    value = os.urandom(LARGE_BYTES)
    raised = {
        "java": {"max_request_size": "10000000", "buffer_memory": "40000000"},
        "confluent": {"message_max_bytes": "10000000"},
    }.get(client, {})
    subject.produce(broker.bootstrap, name, [Sent(b"large", value)], **raised)
    (seen,) = subject.consume(broker.bootstrap, name, 1)
    assert seen.value == value


def test_a_record_above_the_topics_limit_is_refused(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str
) -> None:
    java = clients("java")
    create_topic(broker, name, config={"max.message.bytes": "10000"})
    with pytest.raises(Exception, match="RecordTooLarge"):
        java.produce(broker.bootstrap, name, [Sent(None, bytes(20_000))])
    java.produce(broker.bootstrap, name, [Sent(None, bytes(9_000))])
