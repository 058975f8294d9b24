"""What a hostile message may cost before it is refused: nothing is built on the word of a client."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from ottla.protocol import codec, produce_frames
from ottla.protocol.codec import REQUEST_ELEMENTS_MAX, TAGS_MAX, MalformedMessage, decode
from ottla.protocol.framing import skip_header_tags
from tests.support.work import calls_made

# 2^32 - 1 as a varint: more tags or elements than any frame can hold.
HUGE = b"\xff\xff\xff\xff\x0f"
MANY_TAGS = HUGE + b"\x01\x00" * 5_000_000


def refused_at_once(work: Callable[[], object]) -> None:
    def refused() -> None:
        with pytest.raises(MalformedMessage):
            work()

    assert calls_made(refused) < 500_000  # without the limit it is ten million


def test_millions_of_header_tags() -> None:
    refused_at_once(lambda: skip_header_tags(memoryview(MANY_TAGS), 0))


def test_millions_of_tags_behind_a_struct_without_known_tags() -> None:
    refused_at_once(lambda: decode("HeartbeatRequest", 4, b"\x02g\x00\x00\x00\x00\x02m\x00" + MANY_TAGS))


def test_millions_of_tags_behind_a_struct_with_known_tags() -> None:
    head = struct.pack(">iiib", 0, 1, 1, 0) + bytes(8) + b"\x01\x01\x01"
    refused_at_once(lambda: decode("FetchRequest", 15, head + MANY_TAGS))


def test_millions_of_tags_in_a_produce_request() -> None:
    body = b"\x00" + struct.pack(">hi", 1, 1000) + b"\x02\x02t\x02" + struct.pack(">i", 0) + b"\x01" + MANY_TAGS
    refused_at_once(lambda: produce_frames.decode(memoryview(body), 0, 9))


def test_a_few_unknown_tags_are_skipped() -> None:
    tags = bytes([TAGS_MAX]) + b"".join(bytes([100, 1, 0]).replace(b"d", bytes([number])) for number in range(TAGS_MAX))
    assert decode("HeartbeatRequest", 4, b"\x02g\x00\x00\x00\x00\x02m\x00" + tags).group_id == "g"
    assert skip_header_tags(memoryview(tags), 0) == len(tags)


def test_more_elements_than_anybody_needs() -> None:
    names = struct.pack(">i", REQUEST_ELEMENTS_MAX + 1) + b"\x00\x01x" * (REQUEST_ELEMENTS_MAX + 1)
    refused_at_once(lambda: decode("MetadataRequest", 1, names))
    just_enough = struct.pack(">i", REQUEST_ELEMENTS_MAX) + b"\x00\x01x" * REQUEST_ELEMENTS_MAX
    assert len(decode("MetadataRequest", 1, just_enough).topics) == REQUEST_ELEMENTS_MAX


def test_elements_are_counted_over_all_arrays() -> None:
    inner = b"\x00\x01x" + struct.pack(">i", 1000) + struct.pack(">iq", 0, 0) * 1000
    body = struct.pack(">i", -1) + struct.pack(">i", 200) + inner * 200
    refused_at_once(lambda: decode("ListOffsetsRequest", 1, body))


def test_partitions_of_a_produce_request_are_counted_over_all_topics() -> None:
    topic = b"\x00\x01x" + struct.pack(">i", 1000) + struct.pack(">ii", 0, -1) * 1000
    body = b"\xff\xff" + struct.pack(">hii", 1, 1000, 200) + topic * 200
    refused_at_once(lambda: produce_frames.decode(memoryview(body), 0, 7))


def test_large_answers_are_still_read() -> None:
    """A cluster may tell us of more partitions than a client may ask about."""
    partition = codec.message_class("MetadataResponse").MetadataResponsePartition  # type: ignore[attr-defined]
    topic = codec.message_class("MetadataResponse").MetadataResponseTopic  # type: ignore[attr-defined]
    made = codec.message_class("MetadataResponse")(  # type: ignore[call-arg]
        topics=[topic(name="t", partitions=[partition(partition_index=n) for n in range(REQUEST_ELEMENTS_MAX + 1)])]
    )
    again = decode("MetadataResponse", 9, codec.encode(made, 9))
    assert len(again.topics[0].partitions) == REQUEST_ELEMENTS_MAX + 1
