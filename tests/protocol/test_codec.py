"""Our compiled codec against kio, an independent implementation generated from the same protocol."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage, definition, message_class, message_names, version_range
from ottla.protocol.messages import FetchRequest, JoinGroupRequest, MetadataRequest, MetadataResponse

# Fields that kio reads as dates or durations: keep them where a date exists.
SMALL = 2_000_000_000


def random_value(kind: str, field: dict[str, Any], top: Any, version: int, rng: random.Random, nullable: bool) -> Any:
    if nullable and rng.random() < 0.2:
        return None
    if kind.startswith("[]"):
        return (
            [random_value(kind[2:], field, top, version, rng, False) for _ in range(rng.choice((0, 1, 2, 130)))]
            if ("fields" not in field)
            else [random_value(kind[2:], field, top, version, rng, False) for _ in range(rng.choice((0, 1, 2)))]
        )
    if kind == "string":
        return rng.choice(("", "a", "topic-1", "ümläut", "x" * 200))
    if kind in ("bytes", "records"):
        return rng.randbytes(rng.choice((0, 1, 300)))
    if kind == "uuid":
        return rng.randbytes(16)
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "float64":
        return rng.random()
    if kind == "int16" and field["name"].endswith("error_code"):
        return rng.choice((0, 3, 35))
    bits = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 31}.get(kind)
    if bits is not None:
        return rng.randrange(0, 2**bits)
    return random_struct(getattr(top, kind), field["fields"], top, version, rng)


def random_struct(cls: Any, fields: list[dict[str, Any]], top: Any, version: int, rng: random.Random) -> Any:
    made = cls()
    for field in fields:
        low, high = version_range(field["versions"])
        if not low <= version <= high:
            continue
        null_low, null_high = version_range(field.get("nullable"))
        nullable = null_low <= version <= null_high
        setattr(made, field["name"], random_value(field["type"], field, top, version, rng, nullable))
    return made


def random_message(name: str, version: int, seed: int) -> Any:
    top = message_class(name)
    return random_struct(top, definition(name)["fields"], top, version, random.Random(seed))


def cases(kinds: tuple[str, ...]) -> list[tuple[str, int]]:
    return [
        (name, version)
        for name in message_names()
        if definition(name)["kind"] in kinds
        for version in range(*(lambda r: (r[0], r[1] + 1))(version_range(definition(name)["versions"])))
    ]


@pytest.mark.parametrize("kind", ["request", "response", "data", "coordinator-key", "coordinator-value"])
def test_every_message_and_version_survives_a_round_trip(kind: str) -> None:
    for name, version in cases((kind,)):
        for seed in range(3):
            message = random_message(name, version, seed)
            raw = bytes(codec.encode(message, version))
            again, end = codec.decode_from(name, version, raw)
            assert end == len(raw), (name, version, seed)
            assert again == message, (name, version, seed)


def to_the_end(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    """What it gives, and how often it stopped."""
    stops = 0
    try:
        while True:
            next(steps)
            stops += 1
    except StopIteration as end:
        return end.value, stops


def test_in_steps_the_same_comes_out() -> None:
    for name in message_names():
        if definition(name)["kind"] not in ("request", "response"):
            continue
        version = version_range(definition(name)["versions"])[1]
        message = random_message(name, version, 1)
        raw = codec.encode(message, version)
        assert to_the_end(codec.encode_in_steps(message, version))[0] == raw
        assert to_the_end(codec.decode_in_steps(name, version, raw))[0] == codec.decode(name, version, bytes(raw))


def test_steps_are_few_elements_each() -> None:
    partition = MetadataResponse.MetadataResponsePartition
    topics = [
        MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition(replica_nodes=[1])] * 10)
        for _ in range(100)
    ]
    message = MetadataResponse(topics=topics)
    elements = 100 + 100 * 10 + 100 * 10
    raw, stops = to_the_end(codec.encode_in_steps(message, 12))
    assert stops == elements // codec.STEP_ELEMENTS
    again, stops = to_the_end(codec.decode_in_steps("MetadataResponse", 12, raw))
    assert stops == elements // codec.STEP_ELEMENTS
    assert again == message


def test_many_bytes_are_copied_in_steps() -> None:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="p", metadata=bytes(range(256)) * (20 << 10))
    raw = codec.encode(JoinGroupRequest(protocols=[protocol]), 9)
    decoded, stops = to_the_end(codec.decode_in_steps("JoinGroupRequest", 9, raw))
    assert stops == 5
    assert decoded.protocols[0].metadata == protocol.metadata
    with pytest.raises(MalformedMessage):
        to_the_end(codec.decode_in_steps("JoinGroupRequest", 9, raw[:-1000]))


def test_kio_reads_what_we_write_and_writes_the_same_bytes() -> None:
    compared = 0
    for name, version in cases(("request", "response")):
        load = load_request_schema if name.endswith("Request") else load_response_schema
        try:
            schema = load(definition(name)["key"], version)
        except Exception:
            continue  # a version newer than kio's
        for seed in range(3):
            raw = bytes(codec.encode(random_message(name, version, seed), version))
            entity, size = entity_reader(schema)(raw, 0)
            assert size == len(raw), (name, version, seed)
            out = io.BytesIO()
            entity_writer(schema)(out, entity)
            # kio writes optional tagged fields that we leave at their default, so compare what each means.
            assert codec.decode(name, version, out.getvalue()) == codec.decode(name, version, raw), (name, version)
            compared += 1
    assert compared > 800


def test_every_truncation_is_refused_and_none_crashes() -> None:
    for name, version in cases(("request",)):
        raw = bytes(codec.encode(random_message(name, version, 1), version))
        for size in range(0, len(raw), max(1, len(raw) // 40)):
            with pytest.raises(MalformedMessage):
                codec.decode(name, version, raw[:size])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(cases(("request",))))
def test_any_bytes_are_a_message_or_a_malformed_message(raw: bytes, case: tuple[str, int]) -> None:
    try:
        codec.decode(*case, raw)
    except MalformedMessage:
        pass


@pytest.mark.parametrize("length", [2**31 - 1, -2, 1_000_000])
def test_a_forged_array_length_allocates_nothing(length: int) -> None:
    with pytest.raises(MalformedMessage):
        codec.decode("MetadataRequest", 1, struct.pack(">i", length) + bytes(8))


def test_a_forged_compact_array_length_allocates_nothing() -> None:
    with pytest.raises(MalformedMessage):
        codec.decode("MetadataRequest", 12, b"\xff\xff\xff\xff\x0f" + bytes(8))


@pytest.mark.parametrize("raw", [b"\xff" * 5, b"\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x00"])
def test_an_overlong_varint_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        codec.read_uvarint(raw, 0) if len(raw) > 5 else codec.decode("MetadataRequest", 12, raw)


@pytest.mark.parametrize("tags", [b"\x02\x01\x00\x01\x00", b"\x02\x05\x00\x01\x00"])
def test_duplicate_or_unordered_tags_are_refused(tags: bytes) -> None:
    whole = bytes(codec.encode(MetadataRequest(topics=[]), 12))
    assert whole[-1] == 0
    with pytest.raises(MalformedMessage):
        codec.decode("MetadataRequest", 12, whole[:-1] + tags)


def test_unknown_tagged_fields_are_skipped() -> None:
    whole = bytes(codec.encode(MetadataRequest(topics=[]), 12))
    assert codec.decode("MetadataRequest", 12, whole[:-1] + b"\x01\x63\x03abc") == MetadataRequest(topics=[])


def test_bad_utf8_is_refused() -> None:
    with pytest.raises(MalformedMessage):
        codec.decode("MetadataRequest", 1, struct.pack(">ih", 1, 2) + b"\xff\xfe")


def test_a_string_that_no_old_version_could_carry_is_refused() -> None:
    """A group id of 40,000 bytes fits into a compact field, and into no record key."""
    raw = bytes(codec.encode(message_class("HeartbeatRequest")(group_id="g" * 40_000), 4))  # type: ignore[call-arg]
    with pytest.raises(MalformedMessage):
        codec.decode("HeartbeatRequest", 4, raw)


def test_records_are_views_into_the_request_not_copies() -> None:
    message = message_class("ProduceRequest")
    topic = message.TopicProduceData(  # type: ignore[attr-defined]
        name="t",
        partition_data=[message.PartitionProduceData(index=0, records=b"abc")],  # type: ignore[attr-defined]
    )
    raw = bytes(codec.encode(message(topic_data=[topic]), 9))  # type: ignore[call-arg]
    records = codec.decode("ProduceRequest", 9, raw).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview) and records.obj is raw


def test_a_field_that_a_version_lacks_has_its_default() -> None:
    raw = codec.encode(FetchRequest(session_id=7, max_wait_ms=5), 4)
    assert codec.decode("FetchRequest", 4, bytes(raw)).session_id == 0
    assert codec.decode("FetchRequest", 4, bytes(raw)).max_wait_ms == 5


def test_structs_are_attributes_of_their_message() -> None:
    topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=[])
    raw = codec.encode(MetadataResponse(topics=[topic]), 13)
    assert codec.decode("MetadataResponse", 13, bytes(raw)).topics[0].name == "t"
