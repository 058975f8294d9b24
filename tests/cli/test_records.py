"""`ottla produce` and `ottla consume`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.records.positions import START, Span
from ottla.cli.records.reader import Plan, consumer_settings
from ottla.testing import Broker
from tests.cli.command import Cli


def test_arguments_lines_and_files_become_records(cli: Cli, topic: str, tmp_path: Path) -> None:
    outcome = cli.ok("produce", topic, "hello", "world", "-p", "0")
    assert outcome.out == ""
    assert outcome.err == f"sent 2 records to {topic}, partition 0\n"
    cli.ok("produce", topic, "-p", "0", stdin="from stdin\nno newline at the end")
    (tmp_path / "records").write_bytes(b"in a file\n\nafter an empty one\n")
    cli.ok("produce", topic, "-p", "0", "-F", tmp_path / "records")
    cli.ok("produce", topic, "-p", "0", "-D", ";", stdin="x;y\ny;z\n")
    expected = ["hello", "world", "from stdin", "no newline at the end", "in a file", "", "after an empty one"]
    assert cli.ok("consume", topic, "-e").out == "\n".join([*expected, "x", "y\ny", "z"]) + "\n"


def test_keys_headers_and_nulls(cli: Cli, topic: str) -> None:
    cli.ok("produce", topic, "v1", "-k", "k1", "-H", "a=1", "-H", "b=x=y", "-p", "0")
    cli.ok("produce", topic, "-K", r"\t", "-p", "0", stdin="k2\tv\t2\n")
    cli.ok("produce", topic, "-k", "k3", "--null", "", "-p", "0")
    cli.ok("produce", topic, "", "-p", "0")
    records = [json.loads(line) for line in cli.ok("consume", topic, "-e", "-J").lines]
    assert [(one["key"], one["value"]) for one in records] == [("k1", "v1"), ("k2", "v\t2"), ("k3", None), (None, "")]
    assert records[0]["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": "x=y"}]
    assert records[0]["timestamp_type"] == "create"
    assert set(records[0]) == {
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"
    }  # fmt: skip


def test_json_lines_copy_a_topic_byte_for_byte(cli: Cli, five: str, name: str) -> None:
    cli.ok("produce", five, "-p", "1", stdin=b"\xff\xfe not text\n")
    copy = f"{name}-copy"
    cli.ok("topic", "create", copy, "-p", "2")
    lines = cli.ok("consume", five, "-e", "-J").out
    cli.ok("produce", copy, "-J", stdin=lines)

    def records(topic: str) -> list[str]:
        return sorted(line.replace(topic, "T") for line in cli.ok("consume", topic, "-e", "-J").lines)

    assert records(copy) == records(five)
    assert "value_base64" in lines


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(cli: Cli, topic: str, codec: str) -> None:
    lines = "".join(f"{n} {'x' * 100}\n" for n in range(300))
    cli.ok("produce", topic, "-q", "-p", "1", "-z", codec, stdin=lines)
    assert cli.ok("consume", topic, "-p", "1", "-e").out == lines


def test_keys_go_where_java_clients_send_them(cli: Cli, name: str) -> None:
    cli.ok("topic", "create", name, "-p", "10")
    cli.ok("produce", name, "-K", ":", stdin="user-7:x\nalpha:x\nbeta:x\n")
    placed = dict(line.split() for line in cli.ok("consume", name, "-e", "-f", r"%k %p\n").lines)
    assert placed == {"user-7": MURMUR2["user-7"], "alpha": MURMUR2["alpha"], "beta": MURMUR2["beta"]}


def murmur2_partition(key: bytes, partitions: int) -> str:
    """Kafka's DefaultPartitioner: toPositive(murmur2(key)) % partitions."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    for at in range(0, len(key) - 3, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if tail := key[len(key) & ~3 :]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return str(((h ^ h >> 15) & 0x7FFFFFFF) % partitions)


MURMUR2 = {key: murmur2_partition(key.encode(), 10) for key in ("user-7", "alpha", "beta")}


def test_where_to_begin_and_to_stop(cli: Cli, five: str) -> None:
    def read(*arguments: str) -> list[str]:
        return sorted(cli.ok("consume", five, *arguments).lines)

    assert read("-e") == ["1", "2", "3", "4", "5"]
    assert read("-e", "-o", "-1") == ["4", "5"]
    assert read("-e", "-o", "-100") == ["1", "2", "3", "4", "5"]
    assert read("-e", "-o", "1", "-p", "0") == ["3", "5"]
    assert read("-e", "-o", "end") == []
    assert read("-o", "1:2") == ["3", "4"]
    assert read("-o", ":1") == ["1", "2"]
    assert read("-o", "2:100") == ["5"]
    assert read("-o", "@1700000001000:@1700000003000") == ["2", "3"]
    assert read("-e", "-o", "@1700000003000") == ["4", "5"]
    assert read("-e", "-o", "@-1h") == []
    assert len(read("-n", "3")) == 3
    assert read("-n", "0") == []


def test_filters(cli: Cli, five: str) -> None:
    def read(*arguments: str) -> list[str]:
        return sorted(cli.ok("consume", five, "-e", *arguments).lines)

    assert read("--grep", "^[24]$") == ["2", "4"]
    assert read("--grep", "c") == ["3"]  # in the key
    assert read("--where", "value > 3 and partition == 0") == ["5"]
    assert read("--where", 'key in ["a", "b"]', "--grep", "1") == ["1"]
    assert read("--where", "timestamp >= @1700000003000") == ["4", "5"]


def test_formats(cli: Cli, five: str) -> None:
    text = cli.ok("consume", five, "-e", "-p", "1", "-f", r"%t-%p@%o %T %k=%s;").out
    assert text == f"{five}-1@0 1700000001000 b=2;{five}-1@1 1700000003000 d=4;"
    assert cli.ok("consume", five, "-e", "-p", "1", "-K", r"\t").out == "b\t2\nd\t4\n"
    assert cli.ok("consume", five, "-e", "-p", "1", "-n", "1", "--output", "yaml").out.startswith(
        f"---\ntopic: {five}\n"
    )


def test_bad_places_are_explained(cli: Cli, five: str) -> None:
    assert f"offset 100 is beyond the end ({five}-0 ends at 3" in cli.fails(1, "consume", five, "-o", "100")
    assert "no partition 9: it has 0 to 1" in cli.fails(1, "consume", five, "-p", "9")
    assert "no such partition" in cli.fails(1, "produce", five, "x", "-p", "9", "-q")


def test_bad_input_names_the_line_and_sends_what_was_before(cli: Cli, topic: str, tmp_path: Path) -> None:
    outcome = cli("produce", topic, "-K", ":", "-q", stdin="a:1\nb:2\nbroken\nc:3\n")
    assert outcome.status == 1
    assert outcome.err == "ottla: stdin line 3 does not fit the format, so it and what follows were not sent: broken\n"
    assert sorted(cli.ok("consume", topic, "-e").lines) == ["1", "2"]
    assert "cannot read" in cli.fails(1, "produce", topic, "-F", tmp_path / "none")
    assert "stdin line 1" in cli.fails(1, "produce", topic, "-J", "-q", stdin="not json\n")


def test_a_record_that_is_too_large_is_explained(cli: Cli, topic: str) -> None:
    cli.ok("topic", "alter", topic, "-c", "max.message.bytes=1000")
    assert "larger than" in cli.fails(1, "produce", topic, "-q", "-p", "0", stdin=os.urandom(5000).hex())


def test_reading_several_topics(cli: Cli, five: str, name: str) -> None:
    other = f"{name}-other"
    cli.ok("topic", "create", other)
    cli.ok("produce", other, "six")
    assert sorted(cli.ok("consume", five, other, "-e").lines) == ["1", "2", "3", "4", "5", "six"]


def test_isolation(cli: Cli, topic: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": cli.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        end(30)
    assert cli.ok("consume", topic, "-e").lines == ["kept"]
    assert cli.ok("consume", topic, "-e", "--isolation", "read_uncommitted").lines == ["kept", "dropped"]


def test_a_damaged_batch_is_not_printed() -> None:
    with Broker() as broker:
        cli = Cli(broker.bootstrap_servers)
        broker.create_topic("t")
        cli.ok("produce", "t", "a treasure", "-q")
        assert broker.data_dir is not None
        segment = broker.data_dir / "t-0" / "00000000000000000000.log"
        segment.write_bytes(segment.read_bytes().replace(b"treasure", b"trousers"))
        assert "CRC" in cli.fails(1, "consume", "t", "-e")


def test_a_full_queue_of_records_does_not_stop_the_reading_for_a_second() -> None:
    plan = Plan(["t"], Span(START), None, [], None, False, "read_committed", lambda _: b"", lambda _: True)
    assert int(consumer_settings(plan)["fetch.queue.backoff.ms"]) <= 10  # librdkafka's default is 1000
