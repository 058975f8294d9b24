"""The hand-written produce codec against the generated one."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from ottla.protocol import codec, produce_frames
from ottla.protocol.messages import ProduceRequest, ProduceResponse
from ottla.protocol.node_endpoints import NodeEndpoint
from ottla.protocol.produce_frames import Layouts, Outcome, encode

P = ProduceRequest
VERSIONS = range(3, 14)
ID = bytes(range(16))


def request(version: int, layout: dict[bytes, dict[int, bytes | None]], acks: int = -1) -> memoryview:
    topics = [
        P.TopicProduceData(
            name="" if version >= 13 else key.decode(),
            topic_id=key if version >= 13 else bytes(16),
            partition_data=[P.PartitionProduceData(index=index, records=records) for index, records in pieces.items()],
        )
        for key, pieces in layout.items()
    ]
    return memoryview(bytes(codec.encode(P(acks=acks, timeout_ms=500, topic_data=topics), version)))


def keys(version: int) -> tuple[bytes, bytes]:
    return (ID, ID[::-1]) if version >= 13 else (b"orders", b"a-much-longer-name" * 10)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_read_as_the_generated_codec_writes_them(version: int) -> None:
    first, second = keys(version)
    layout: dict[bytes, dict[int, bytes | None]] = {first: {0: b"x" * 300, 7: b"", 2: None}, second: {1: b"y"}}
    terms, topics = produce_frames.decode(request(version, layout), 0, version)
    assert terms == (-1, None, 500)
    read = {
        key: {one.partition: None if one.records is None else bytes(one.records) for one in pieces}
        for key, pieces in topics
    }
    assert read == layout


@pytest.mark.parametrize("version", VERSIONS)
def test_every_cut_of_a_request_is_malformed(version: int) -> None:
    whole = request(version, {keys(version)[0]: {0: b"x" * 30}})
    for size in range(len(whole) - (3 if version >= 9 else 0)):
        with pytest.raises(codec.MalformedMessage):
            produce_frames.decode(whole[:size], 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_are_what_the_generated_codec_writes(version: int) -> None:
    R = ProduceResponse
    key = keys(version)[0]
    lines = [Outcome(0, 0, 5, -1, 2), Outcome(3, 87, -1, 17, 9, "why", ((1, "no key"), (2, "no key")))]
    expected = R(
        responses=[
            R.TopicProduceResponse(
                name=key.decode() if version < 13 else "",
                topic_id=key if version >= 13 else bytes(16),
                partition_responses=[
                    R.PartitionProduceResponse(
                        index=one.partition,
                        error_code=one.error,
                        base_offset=one.base_offset,
                        log_append_time_ms=one.log_append_time,
                        log_start_offset=one.log_start_offset,
                        error_message=one.message,
                        record_errors=[
                            R.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                            for index, text in one.record_errors
                        ],
                    )
                    for one in lines
                ],
            )
        ]
    )
    body = codec.encode(expected, version)
    assert encode(version, 99, [(key, lines)])[9 if version >= 9 else 8 :] == body


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_name_the_right_leader_where_the_version_has_room_for_it(version: int) -> None:
    R = ProduceResponse
    key = keys(version)[0]
    line = R.PartitionProduceResponse(index=3, error_code=6, base_offset=-1, record_errors=())
    expected = R(
        responses=[
            R.TopicProduceResponse(
                name=key.decode() if version < 13 else "",
                topic_id=key if version >= 13 else bytes(16),
                partition_responses=[line],
            )
        ]
    )
    if version >= 10:
        line.current_leader = R.LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
        expected.node_endpoints = [
            R.NodeEndpoint(node_id=2, host="one", port=9092, rack="near"),
            R.NodeEndpoint(node_id=3, host="other", port=9093, rack=None),
        ]
    body = codec.encode(expected, version)
    outcomes = [(key, [Outcome(3, 6, current_leader=(2, 7))])]
    endpoints = [NodeEndpoint(2, "one", 9092, "near"), NodeEndpoint(3, "other", 9093, None)]
    assert encode(version, 99, outcomes, endpoints)[9 if version >= 9 else 8 :] == body


def header(version: int, correlation_id: int = 77, client_id: bytes = b"rdkafka") -> bytes:
    tags = b"\x00" if version >= 9 else b""
    return struct.pack(">hhih", 0, version, correlation_id, len(client_id)) + client_id + tags


def frame(version: int, layout: dict[bytes, dict[int, bytes | None]], acks: int = -1, **of_header: Any) -> memoryview:
    return memoryview(header(version, **of_header) + bytes(request(version, layout, acks)))


def remember(layouts: Layouts, version: int, whole: memoryview) -> int:
    return layouts.remember(whole, version, *produce_frames.decode(whole, len(header(version)), version))


def remembered(version: int, whole: memoryview) -> tuple[Layouts, int]:
    layouts = Layouts()
    return layouts, remember(layouts, version, whole)


def found(layouts: Layouts, whole: memoryview, prefix_end: int) -> memoryview | None:
    layout, _ = layouts.find(whole, prefix_end)
    return None if layout is None else layout.records(whole)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_remembered_layout_reads_the_next_request_and_answers_it_alike(version: int) -> None:
    key = keys(version)[0]
    layouts, prefix_end = remembered(version, frame(version, {key: {4: b"first" * 10}}))
    assert prefix_end
    for size in (8, 100, 126, 127, 128, 129, 16_382, 16_383, 16_384, 20_000):
        assert found(layouts, frame(version, {key: {4: b"n" * size}}), prefix_end) == b"n" * size
    layout, correlation_id = layouts.find(frame(version, {key: {4: b"first" * 10}}, correlation_id=-5), prefix_end)
    assert layout is not None and correlation_id == -5
    assert layout.answer(7, 11, 12, 13) == encode(version, 7, [(key, [Outcome(4, 0, 11, 12, 13)])])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [8, 126, 127, 128, 16_382, 16_383, 20_000])
def test_records_of_any_size_are_remembered(version: int, size: int) -> None:
    whole = frame(version, {keys(version)[0]: {4: b"n" * size}})
    layouts, prefix_end = remembered(version, whole)
    assert found(layouts, whole, prefix_end) == b"n" * size


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_of_a_topic_are_found_by_turns(version: int) -> None:
    key = keys(version)[0]
    layouts, prefix_end = remembered(version, frame(version, {key: {4: b"first" * 10}}))
    other = frame(version, {key: {5: b"second" * 10}})
    assert found(layouts, other, prefix_end) is None
    assert remember(layouts, version, other) == prefix_end
    assert found(layouts, other, prefix_end) == b"second" * 10
    layout, _ = layouts.find(other, prefix_end)
    assert layout is not None and (layout.key, layout.partition) == (key, 5)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_differs_anywhere_does_not_fit_the_layout(version: int) -> None:
    first, second = keys(version)
    whole = frame(version, {first: {4: b"first" * 10}})
    layouts, prefix_end = remembered(version, whole)
    others = [
        frame(version, {first: {5: b"first" * 10}}),
        frame(version, {second: {4: b"first" * 10}}),
        frame(version, {first: {4: b"first" * 10, 5: b"second"}}),
        frame(version, {first: {4: b"first" * 10}, second: {4: b"first"}}),
        frame(version, {first: {4: b"first" * 10}}, acks=1),
        frame(version, {first: {4: None}}),
        frame(version, {first: {4: b"first" * 10}}, client_id=b"another"),
        memoryview(b"\x00\x01" + bytes(whole[2:])),  # another API
        whole[:-1],
        memoryview(bytes(whole) + b"\x00"),
    ]
    for other in others:
        assert found(layouts, other, prefix_end) is None
    if version < 13:
        assert found(layouts, memoryview(struct.pack(">hh", 0, version + 1) + bytes(whole[4:])), prefix_end) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_0_and_several_partitions_are_not_remembered(version: int) -> None:
    first, _ = keys(version)
    several = frame(version, {first: {4: b"first" * 10, 5: b"x"}})
    silent = frame(version, {first: {4: b"first" * 10}}, acks=0)
    unheard_of = frame(version, {first: {4: b"first" * 10}}, acks=2)
    for whole in (several, silent, unheard_of):
        assert remembered(version, whole)[1] == 0


def test_what_is_remembered_has_a_limit() -> None:
    layouts = Layouts()
    for number in range(Layouts.COUNT_MAX + 10):
        whole = frame(9, {b"t%d" % number: {0: b"records!"}})
        remember(layouts, 9, whole)
    assert len(layouts.known[9]) <= Layouts.COUNT_MAX
    long = frame(9, {b"t" * 5000: {0: b"records!"}})
    assert remember(layouts, 9, long) == 0
