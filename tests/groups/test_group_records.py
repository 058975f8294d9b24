"""Records as bytes: Kafka's layout, and a way back for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.ids import TopicId
from ottla.groups import records
from ottla.groups.classic_group import ClassicGroup, ClassicMember
from ottla.groups.consumer_group import ClassicMetadata, Member, MemberState, ResolvedRegex
from ottla.groups.offsets import CommittedOffset
from ottla.groups.records import Record
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage

TOPIC = TopicId(bytes(range(16)))


def classic_group() -> ClassicGroup:
    group = ClassicGroup("g", 3)
    member = ClassicMember(
        "m",
        instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=2,
        session_timeout_ms=1,
        protocols=(("range", b"sub"),),
    )
    group.add(member, "consumer")
    group.protocol = "range"
    group.state_timestamp_ms = 9
    return group


MEMBER = Member(
    "m",
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    topics=("a", "b"),
    regex="x.*",
    rebalance_timeout_ms=5,
    assignor="uniform",
    classic=ClassicMetadata(7, (("range", b"sub"),)),
    epoch=4,
    previous_epoch=3,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned={TOPIC: {0: 1, 1: 4}},
    revoking={TOPIC: {2: 1}},
)

EVERY_KIND = [
    records.offset_commit("g", "t", 1, CommittedOffset(5, 6, "meta", 7)),
    records.offset_commit("g", "t", 1, CommittedOffset(5, -1, "meta", 7, 8)),
    records.offset_commit("g", "t", 1, CommittedOffset(5, 6, "meta", 7, topic_id=TOPIC)),
    records.offset_tombstone("g", "t", 1),
    records.group_metadata(classic_group(), {"m": b"assigned"}),
    records.empty_group_metadata("g", 0),
    records.group_tombstone("g"),
    records.group_epoch("g", 4, -5),
    records.group_epoch_tombstone("g"),
    records.partition_metadata_tombstone("g"),
    records.member_metadata("g", MEMBER),
    records.member_metadata("g", Member("m")),
    records.member_metadata_tombstone("g", "m"),
    records.target_epoch("g", 4, 99),
    records.target_epoch_tombstone("g"),
    records.target_assignment("g", "m", {TOPIC: (0, 1)}),
    records.target_assignment_tombstone("g", "m"),
    records.current_assignment("g", MEMBER),
    records.current_assignment_tombstone("g", "m"),
    records.regular_expression("g", "x.*", ResolvedRegex(("a",), 1, 2)),
    records.regular_expression_tombstone("g", "x.*"),
]


@pytest.mark.parametrize("record", EVERY_KIND, ids=lambda one: type(one.key).__name__)
def test_each_kind_comes_back_as_it_was_written(record: Record) -> None:
    key, value = records.serialize(record)
    back = records.deserialize(key, value)
    assert back is not None
    assert back.key == record.key
    assert back.value == record.value


def test_a_commit_has_kafkas_bytes() -> None:
    key, value = records.serialize(records.offset_commit("g", "t", 1, CommittedOffset(5, 6, "m", 7)))
    assert key == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x01"
    assert value == (
        b"\x00\x03" + (5).to_bytes(8, "big") + (6).to_bytes(4, "big") + b"\x00\x01m" + (7).to_bytes(8, "big")
    )


def test_the_quick_way_to_write_a_commit_writes_the_same() -> None:
    record = records.offset_commit("gräup", "t.1", 2**31 - 1, CommittedOffset(2**63 - 1, -1, "mété", 7))
    key, value = records.serialize(record)
    assert record.value is not None
    assert key == b"\x00\x01" + bytes(codec.encode(record.key, 0))
    assert value == b"\x00\x03" + bytes(codec.encode(record.value, 3))


def test_a_generation_has_kafkas_bytes() -> None:
    key, value = records.serialize(records.empty_group_metadata("g", 3))
    assert key == b"\x00\x02\x00\x01g"
    assert value == (
        b"\x00\x03\x00\x00" + (3).to_bytes(4, "big") + b"\xff\xff\xff\xff" + b"\xff" * 8 + b"\x00\x00\x00\x00"
    )


def test_a_member_of_the_consumer_protocol_carries_nothing_of_the_classic_one() -> None:
    """Kafka cannot read a tag whose value is null."""
    _, value = records.serialize(records.member_metadata("g", Member("m", client_id="c", client_host="/h")))
    # version, no instance, no rack, client, host, no topics, no pattern, rebalance timeout, no assignor, no tags
    assert (
        value == b"\x00\x00" + b"\x00\x00" + b"\x02c" + b"\x03/h" + b"\x01" + b"\x01" + b"\xff" * 4 + b"\x00" + b"\x00"
    )


def test_a_member_as_kafka_writes_it_is_read() -> None:
    """Recorded from Kafka 4.3.1, which writes the tag with a null in it."""
    raw = b"\x00\x00\x00\x00\x04raw\x0b/127.0.0.1\x02\x07orders\x01\x00\x00u0\x00\x01\x00\x01\x00"
    record = records.deserialize(b"\x00\x05\x00\x03con\x00\x02m1", raw)
    assert record is not None
    value: Any = record.value
    assert (value.client_id, value.subscribed_topic_names, value.rebalance_timeout_ms) == ("raw", ["orders"], 30_000)
    assert value.classic_member_metadata is None


def test_records_of_other_kinds_are_passed_over() -> None:
    assert records.deserialize(b"\x00\x0b\x00\x01g", b"\x00\x00") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"", b""), (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x09"), (b"\x00\x02\x00\x09g", None)],
)
def test_what_is_not_a_record_is_said_to_be_none(key: bytes, value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        records.deserialize(key, value)
