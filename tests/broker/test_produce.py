"""Produce over a real socket, in every version: what is stored, what is answered, what is refused."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol.messages import ProduceRequest
from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch, read_records
from ottla.testing import Broker
from tests.support.broker_fixtures import topic_id
from tests.support.hostile_batches import HOSTILE, UNREADABLE, patched, plain, raw_body
from tests.support.raw_client import ConnectionClosed, RawClient, batch_of, produce_request, request_frame
from tests.support.sequences import EXPECTED_SEQUENCES, sequence_transcript

MakeTopic = Callable[..., str]
VERSIONS = range(3, 14)
CODECS = list(Codec)


def error_of(line: object) -> ErrorCode:
    return ErrorCode(line.error_code)  # type: ignore[attr-defined]


# --- every version


@pytest.mark.parametrize("version", VERSIONS)
def test_records_come_back_as_they_were_sent(client: RawClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic(partitions=2)
    name = topic_id(client, topic) if version >= 13 else topic
    first = client.produce(name, batch_of(b"a", b"b"), partition=1, version=version)
    assert (first.index, first.error_code, first.base_offset) == (1, 0, 0)
    second = client.produce(name, batch_of(b"c"), partition=1, version=version)
    assert second.base_offset == 2
    assert second.log_append_time_ms == -1
    if version >= 5:
        assert second.log_start_offset == 0
    assert [(one.offset, one.value) for one in client.read_all(topic, partition=1)] == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_are_told_in_every_version(client: RawClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    name = topic_id(client, topic) if version >= 13 else topic
    line = client.produce(name, patched(plain(), 17, "I", 1, crc=False), version=version)
    assert error_of(line) is ErrorCode.CORRUPT_MESSAGE
    assert line.base_offset == -1
    # The connection still works.
    assert client.produce(name, batch_of(b"good"), version=version).base_offset == 0


@pytest.mark.parametrize("version", [0, 1, 2, 14])
def test_versions_that_are_not_served_close_the_connection(client: RawClient, version: int) -> None:
    client.send_frame(b"\x00\x00" + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20))
    assert client.is_closed_by_peer()


def test_several_topics_and_partitions_in_one_request(client: RawClient, make_topic: MakeTopic) -> None:
    one, two = make_topic(partitions=3), make_topic()
    data = ProduceRequest.TopicProduceData
    piece = ProduceRequest.PartitionProduceData
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            data(name=one, partition_data=[piece(index=n, records=batch_of(b"%d" % n)) for n in (2, 0, 9)]),
            data(name="nowhere", partition_data=[piece(index=0, records=batch_of(b"x"))]),
            data(name=two, partition_data=[piece(index=0, records=batch_of(b"y"))]),
        ],
    )
    answer = client.call(request, 9)
    told = [
        (topic.name, line.index, error_of(line).name)
        for topic in answer.responses
        for line in topic.partition_responses
    ]
    assert told == [
        (one, 2, "NONE"),
        (one, 0, "NONE"),
        (one, 9, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("nowhere", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        (two, 0, "NONE"),
    ]
    assert [one.value for one in client.read_all(one, partition=2)] == [b"2"]


def test_the_same_partition_twice_in_one_request_is_written_twice_in_order(
    client: RawClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    request = produce_request(topic, batch_of(b"first"))
    request.topic_data[0].partition_data = [  # type: ignore[attr-defined]
        ProduceRequest.PartitionProduceData(index=0, records=batch_of(value)) for value in (b"first", b"second")
    ]
    lines = client.call(request, 9).responses[0].partition_responses
    assert [line.base_offset for line in lines] == [0, 1]
    assert [one.value for one in client.read_all(topic)] == [b"first", b"second"]


def test_an_unknown_topic_id(client: RawClient, make_topic: MakeTopic) -> None:
    assert error_of(client.produce(b"?" * 16, batch_of(b"x"), version=13)) is ErrorCode.UNKNOWN_TOPIC_ID
    known = topic_id(client, make_topic())
    line = client.produce(known, batch_of(b"x"), partition=1, version=13)
    assert error_of(line) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("partition", [-1, -(2**31), 2**31 - 1])
def test_partitions_that_cannot_be(client: RawClient, make_topic: MakeTopic, partition: int) -> None:
    line = client.produce(make_topic(), batch_of(b"x"), partition=partition)
    assert error_of(line) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- what is stored


@pytest.mark.parametrize("kind", CODECS, ids=lambda one: one.name.lower())
def test_each_codec_is_stored_as_it_came(client: RawClient, make_topic: MakeTopic, kind: Codec) -> None:
    topic = make_topic()
    sent = batch_of(b"value" * 100, b"", None, codec=kind)
    assert client.produce(topic, sent).error_code == 0
    stored = client.fetch(topic).records
    assert v2.read_header(stored).codec == kind
    assert bytes(stored[16:]) == bytes(sent[16:]), "only offset and leader epoch are the broker's"
    assert [one.value for one in read_records(stored)] == [b"value" * 100, b"", None]


def test_zstd_needs_a_version_that_knows_it(client: RawClient, make_topic: MakeTopic) -> None:
    line = client.produce(make_topic(), batch_of(b"x", codec=Codec.ZSTD), version=6)
    assert error_of(line) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("wanted", CODECS, ids=lambda one: f"to-{one.name.lower()}")
@pytest.mark.parametrize("sent", CODECS, ids=lambda one: f"from-{one.name.lower()}")
def test_a_topic_with_its_own_codec_recompresses(
    client: RawClient, make_topic: MakeTopic, sent: Codec, wanted: Codec
) -> None:
    topic = make_topic(compression_type="uncompressed" if wanted is Codec.NONE else wanted.name.lower())
    headers = (("h", b"1"), ("h", None))
    records = [Record(n, 1_700_000_000_000 + n, b"key-%d" % n, b"value-%d" % n * 50, headers) for n in range(20)]
    assert client.produce(topic, build_batch(records, codec=sent)).base_offset == 0
    stored = client.fetch(topic).records
    header = v2.read_header(stored)
    assert header.codec == wanted
    assert v2.compute_crc(stored, 0, len(stored)) == header.crc
    assert list(read_records(stored)) == records


def test_recompression_keeps_what_makes_a_batch_idempotent(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(compression_type="zstd")
    sent = batch_of(b"a", b"b", codec=Codec.GZIP, producer_id=900, producer_epoch=3, base_sequence=0)
    assert client.produce(topic, sent).error_code == 0
    header = v2.read_header(client.fetch(topic).records)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (900, 3, 0)


def test_bytes_that_are_not_of_their_codec_are_refused_where_the_topic_recompresses(
    client: RawClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(compression_type="lz4")
    for kind in (1, 2, 4):
        line = client.produce(topic, raw_body(b"not compressed at all", 1, codec=kind))
        assert error_of(line) is ErrorCode.CORRUPT_MESSAGE
    assert client.read_all(topic) == []


def test_log_append_time_replaces_the_clients(broker: Broker, client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before = broker.clock.now_ms()
    # Out of range for create time, of no matter here.
    line = client.produce(topic, batch_of(b"a", b"b", timestamp=5))
    assert line.error_code == 0
    assert before <= line.log_append_time_ms <= broker.clock.now_ms()
    stored = client.fetch(topic).records
    header = v2.read_header(stored)
    assert header.uses_log_append_time
    assert v2.compute_crc(stored, 0, len(stored)) == header.crc
    assert {one.timestamp for one in read_records(stored)} == {line.log_append_time_ms}


@pytest.mark.parametrize("kind", [Codec.NONE, Codec.ZSTD], ids=lambda one: one.name.lower())
def test_log_append_time_and_recompression_together(client: RawClient, make_topic: MakeTopic, kind: Codec) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime", compression_type="snappy")
    line = client.produce(topic, batch_of(b"a", b"b", timestamp=5, codec=kind))
    stored = client.fetch(topic).records
    header = v2.read_header(stored)
    assert (header.codec, v2.compute_crc(stored, 0, len(stored))) == (Codec.SNAPPY, header.crc)
    assert {one.timestamp for one in read_records(stored)} == {line.log_append_time_ms}


# --- what is refused


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_batch_gets_kafkas_error_and_is_not_stored(
    client: RawClient, make_topic: MakeTopic, name: str
) -> None:
    make, expected = HOSTILE[name]
    topic = make_topic()
    client.produce(topic, batch_of(b"before"))
    line = client.produce(topic, make())
    assert error_of(line) is expected
    assert line.base_offset == -1
    assert client.produce(topic, batch_of(b"after")).base_offset == 1
    assert [one.value for one in client.read_all(topic)] == [b"before", b"after"]


def test_null_records(client: RawClient, make_topic: MakeTopic) -> None:
    assert error_of(client.produce(make_topic(), None)) is ErrorCode.INVALID_RECORD


def test_a_batch_larger_than_the_topic_allows(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=1000)
    overhead = len(batch_of(b"x" * 900)) - 900
    assert client.produce(topic, batch_of(b"x" * (1000 - overhead))).error_code == 0
    line = client.produce(topic, batch_of(b"x" * (1001 - overhead)))
    assert error_of(line) is ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes" in line.error_message


def test_max_message_bytes_of_kafka_is_a_megabyte_and_a_batch_header(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    overhead = len(batch_of(bytes(1_000_000))) - 1_000_000
    assert client.produce(topic, batch_of(bytes(1048588 - overhead))).error_code == 0
    assert error_of(client.produce(topic, batch_of(bytes(1048589 - overhead)))) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_recompression_makes_too_large_is_refused(client: RawClient, make_topic: MakeTopic) -> None:
    """Kafka measures the batch as it would be stored."""
    topic = make_topic(compression_type="uncompressed", max_message_bytes=1000)
    sent = batch_of(bytes(5000), codec=Codec.ZSTD)
    assert len(sent) < 1000
    assert error_of(client.produce(topic, sent)) is ErrorCode.MESSAGE_TOO_LARGE
    assert client.read_all(topic) == []


def test_a_batch_that_is_too_large_as_sent_is_refused_though_it_would_shrink(
    client: RawClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(compression_type="zstd", max_message_bytes=1000)
    assert error_of(client.produce(topic, batch_of(bytes(5000)))) is ErrorCode.MESSAGE_TOO_LARGE


def test_timestamps_must_be_near_the_brokers(client: RawClient, make_topic: MakeTopic) -> None:
    now = int(time.time() * 1000)
    topic = make_topic(message_timestamp_before_max_ms=60_000, message_timestamp_after_max_ms=60_000)
    assert client.produce(topic, batch_of(b"now", timestamp=now)).error_code == 0
    for wrong in (now - 70_000, now + 70_000):
        line = client.produce(topic, batch_of(b"x", timestamp=wrong))
        assert error_of(line) is ErrorCode.INVALID_TIMESTAMP
    assert client.produce(topic, batch_of(b"none", timestamp=-1)).error_code == 0


@pytest.mark.parametrize("kind", CODECS, ids=lambda one: one.name.lower())
def test_records_without_keys_on_a_compacted_topic_are_named(
    client: RawClient, make_topic: MakeTopic, kind: Codec
) -> None:
    topic = make_topic(cleanup_policy="compact")
    now = int(time.time() * 1000)
    records = [Record(n, now, None if n in (1, 3) else b"key", b"value") for n in range(5)]
    line = client.produce(topic, build_batch(records, codec=kind))
    assert error_of(line) is ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in line.record_errors] == [1, 3]
    assert all(one.batch_index_error_message for one in line.record_errors)
    assert line.error_message
    assert client.read_all(topic) == []
    assert client.produce(topic, build_batch([records[0]], codec=kind)).base_offset == 0


@pytest.mark.parametrize("name", UNREADABLE)
def test_noise_is_kept_off_a_compacted_topic(client: RawClient, make_topic: MakeTopic, name: str) -> None:
    """The cleaner will read these records: they must be readable."""
    topic = make_topic(cleanup_policy="compact")
    line = client.produce(topic, UNREADABLE[name])
    assert error_of(line) in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
    assert client.read_all(topic) == []


# --- acks


def test_acks_zero_is_stored_and_not_answered(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.send(produce_request(topic, batch_of(b"quiet"), acks=0), 9)
    # Requests on a connection are handled in order: the answer to the next one is the first that comes.
    line = client.produce(topic, batch_of(b"loud"), acks=1)
    assert line.base_offset == 1
    assert [one.value for one in client.read_all(topic)] == [b"quiet", b"loud"]


def test_acks_zero_with_an_error_closes_the_connection(client: RawClient, make_topic: MakeTopic) -> None:
    client.send(produce_request(make_topic(), batch_of(b"x"), partition=5, acks=0), 9)
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_other_acks_are_refused(client: RawClient, make_topic: MakeTopic, acks: int) -> None:
    line = client.produce(make_topic(), batch_of(b"x"), acks=acks)
    assert error_of(line) is ErrorCode.INVALID_REQUIRED_ACKS


def test_too_few_replicas_for_acks_all(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(min_insync_replicas=2)
    assert error_of(client.produce(topic, batch_of(b"x"), acks=-1)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert client.produce(topic, batch_of(b"y"), acks=1).error_code == 0
    assert [one.value for one in client.read_all(topic)] == [b"y"]


def test_a_burst_without_acks_is_stored_though_the_client_is_gone(broker: Broker, make_topic: MakeTopic) -> None:
    """A producer with acks=0 sends and closes: what has arrived counts."""
    topic = make_topic()
    with RawClient.to(broker.bootstrap_servers) as hasty:
        frames = [request_frame(produce_request(topic, batch_of(b"%d" % number), acks=0), 9) for number in range(500)]
        hasty.sock.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
    with RawClient.to(broker.bootstrap_servers) as patient:
        deadline = time.monotonic() + 60
        while len(found := patient.read_all(topic)) < 500 and time.monotonic() < deadline:
            time.sleep(0.05)
    assert [one.value for one in found] == [b"%d" % number for number in range(500)]


def test_pipelined_requests_are_answered_in_order(client: RawClient, make_topic: MakeTopic) -> None:
    topic, slow = make_topic(), make_topic(compression_type="zstd")
    for number in range(200):
        # Recompression happens elsewhere, and must not let the next request overtake.
        client.send(produce_request(slow if number % 7 == 0 else topic, batch_of(bytes(30_000))), 9)
    offsets: dict[str, list[int]] = {topic: [], slow: []}
    for number in range(200):
        answer = client.receive("ProduceRequest", 9)
        assert client.last_correlation_id == number + 1
        offsets[answer.responses[0].name].append(answer.responses[0].partition_responses[0].base_offset)
    assert offsets[topic] == list(range(171)) and offsets[slow] == list(range(29))


# --- idempotent producers


def test_sequences_are_judged_as_kafka_does(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert sequence_transcript(client, topic) == EXPECTED_SEQUENCES
    stored = sum(1 for _, code, offset in EXPECTED_SEQUENCES if code == "NONE" and offset >= 0)
    assert len(client.read_all(topic)) < stored + 2, "duplicates are answered, not stored"


def test_sequences_are_judged_the_same_when_batches_are_recompressed(client: RawClient, make_topic: MakeTopic) -> None:
    assert sequence_transcript(client, make_topic(compression_type="zstd")) == EXPECTED_SEQUENCES


def test_sequences_are_judged_the_same_when_each_batch_is_flushed(client: RawClient, make_topic: MakeTopic) -> None:
    assert sequence_transcript(client, make_topic(flush_messages=1)) == EXPECTED_SEQUENCES


@pytest.mark.parametrize("clean", [True, False], ids=["after a clean stop", "after a crash"])
def test_a_duplicate_is_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    def numbered(sequence: int, count: int = 1) -> bytearray:
        return plain(*[b"x"] * count, producer_id=7, producer_epoch=0, base_sequence=sequence)

    with Broker(data_dir=tmp_path) as broker:
        broker.create_topic("topic")
        with RawClient.to(broker.bootstrap_servers) as client:
            for sequence in range(8):
                client.produce("topic", numbered(sequence))
        if not clean:
            shutil.copytree(tmp_path, tmp_path.with_name("crashed"))
    found = tmp_path if clean else tmp_path.with_name("crashed")
    with Broker(data_dir=found) as broker, RawClient.to(broker.bootstrap_servers) as client:
        assert [client.produce("topic", numbered(one)).base_offset for one in range(3, 8)] == [3, 4, 5, 6, 7]
        assert error_of(client.produce("topic", numbered(9))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert client.produce("topic", numbered(8)).base_offset == 8
        assert len(client.read_all("topic")) == 9


def test_a_duplicate_is_not_acknowledged_before_the_original_is_on_disk(
    broker: Broker, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry over another connection finds the batch in the log; but only what is flushed may be acknowledged."""
    topic = make_topic(flush_messages=1)
    batch = bytes(plain(producer_id=8, producer_epoch=0, base_sequence=0))
    partition = broker.server.broker.partitions.get(topic, 0)
    assert partition is not None
    disk = threading.Event()
    real = partition.log.disk.fsync

    def slow(fd: int) -> None:
        disk.wait(20)
        real(fd)

    monkeypatch.setattr(type(partition.log.disk), "fsync", lambda self, fd: slow(fd))
    with RawClient.to(broker.bootstrap_servers) as first, RawClient.to(broker.bootstrap_servers) as second:
        first.send(produce_request(topic, batch), 9)
        time.sleep(0.1)
        second.send(produce_request(topic, batch), 9)
        for waiting in (first, second):
            waiting.sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                waiting.sock.recv(1)
            waiting.sock.settimeout(20)
        disk.set()
        for waiting in (first, second):
            line = waiting.receive("ProduceRequest", 9).responses[0].partition_responses[0]
            assert (line.error_code, line.base_offset) == (0, 0)


def test_records_are_not_shown_before_they_are_on_disk(
    broker: Broker, client: RawClient, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(flush_messages=1)
    client.produce(topic, batch_of(b"flushed"))
    disk = threading.Event()
    partition = broker.server.broker.partitions.get(topic, 0)
    assert partition is not None
    real = partition.log.disk.fsync

    def slow(fd: int) -> None:
        disk.wait(20)
        real(fd)

    monkeypatch.setattr(type(partition.log.disk), "fsync", lambda self, fd: slow(fd))
    with RawClient.to(broker.bootstrap_servers) as producing:
        producing.send(produce_request(topic, batch_of(b"not yet")), 9)
        time.sleep(0.1)
        assert [one.value for one in client.read_all(topic)] == [b"flushed"]
        disk.set()
        assert producing.receive("ProduceRequest", 9).responses[0].partition_responses[0].error_code == 0
        assert [one.value for one in client.read_all(topic)] == [b"flushed", b"not yet"]


# --- internal topics


def test_clients_may_not_write_to_internal_topics(broker: Broker, client: RawClient) -> None:
    broker.create_topic("__consumer_offsets")
    line = client.produce("__consumer_offsets", batch_of(b"v", key=b"k"))
    assert error_of(line) is ErrorCode.INVALID_TOPIC_EXCEPTION


# --- bytes against an independent implementation


@pytest.mark.parametrize("version", range(3, 13))
def test_requests_of_an_independent_codec_are_understood(
    client: RawClient, make_topic: MakeTopic, version: int
) -> None:
    import io

    from kio.index import load_request_schema, load_response_schema
    from kio.serial import entity_reader, entity_writer

    topic = make_topic()
    request_type = load_request_schema(0, version)
    ours = produce_request(topic, batch_of(b"x"))
    kio_request, _ = entity_reader(request_type)(bytes(codec.encode(ours, version)), 0)
    body = io.BytesIO()
    entity_writer(request_type)(body, kio_request)
    header = b"\x00\x00" + version.to_bytes(2, "big") + (7).to_bytes(4, "big") + b"\xff\xff"
    client.send_frame(header + (b"\x00" if version >= 9 else b"") + body.getvalue())
    frame = client.receive_frame()
    assert frame[:4] == (7).to_bytes(4, "big")
    response, end = entity_reader(load_response_schema(0, version))(frame, start := 5 if version >= 9 else 4)
    assert start + end == len(frame)
    line = response.responses[0].partition_responses[0]
    assert (line.index, int(line.error_code), line.base_offset) == (0, 0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_anywhere_closes_the_connection(broker: Broker, make_topic: MakeTopic, version: int) -> None:
    with RawClient.to(broker.bootstrap_servers) as asking:
        name = topic_id(asking, topic := make_topic())
    body = bytes(codec.encode(produce_request(name if version >= 13 else topic, batch_of(b"x")), version))
    header = b"\x00\x00" + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + (b"\x00" if version >= 9 else b"")
    for cut in sorted({0, 1, 2, 5, 8, 9, 12, 20, 30, len(body) // 2, len(body) - 4}):
        with RawClient.to(broker.bootstrap_servers) as hostile:
            hostile.send_frame(header + body[:cut])
            with pytest.raises(ConnectionClosed):
                hostile.receive_frame()
    with RawClient.to(broker.bootstrap_servers) as good:
        assert good.read_all(topic) == []
