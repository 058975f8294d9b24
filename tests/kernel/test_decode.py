"""Fetched bytes become Arrow columns, on the compiled kernel and on its twin."""

from __future__ import annotations

import random
import struct
import zlib
from types import ModuleType
from typing import Any

import cramjam
import pytest
from crc32c import crc32c as reference_crc
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.kernel import decode_pure
from ottla.kernel.errors import CorruptRecords
from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, assemble_batch, build_batch, encode_record
from tests.kernel.answers import ABORT, COMMIT, expected, marker, numbered, read_all, transactional

FIELD = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=10), FIELD), max_size=3).map(tuple)
CODECS = st.sampled_from(list(Codec))


@st.composite
def logs(draw: Any) -> list[list[Record]]:
    """Batches whose offsets have gaps between and inside of them, as compaction leaves them."""
    offset, batches = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 4))):
        batch = []
        for _ in range(draw(st.integers(1, 8))):
            offset += draw(st.integers(1, 3))
            batch.append(Record(offset, draw(st.integers(-1, 2**42)), draw(FIELD), draw(FIELD), draw(HEADERS)))
        batches.append(batch)
    return batches


@given(logs(), st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_was_written_is_read(decode: ModuleType, log: list[list[Record]], data: st.DataObject) -> None:
    answer = b"".join(bytes(build_batch(batch, codec=data.draw(CODECS))) for batch in log)
    records = [record for batch in log for record in batch]
    first, last = records[0].offset, records[-1].offset
    start, end = data.draw(st.integers(first - 1, last + 1)), data.draw(st.integers(first - 1, last + 2))
    rows_max, bytes_max = data.draw(st.integers(1, 20)), data.draw(st.sampled_from([1, 100, 1 << 20]))
    found = read_all(decode, answer, max(0, start), end, rows_max=rows_max, bytes_max=bytes_max)
    assert found == expected([one for one in records if start <= one.offset < end])
    assert decode.fetched_until(answer, 0) == last + 1


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(decode: ModuleType) -> None:
    first, second = bytes(build_batch(numbered(0, 3))), bytes(build_batch(numbered(3, 3)))
    for cut in (0, 1, 11, 16, 60, 61, 70, len(second) - 1):
        answer = first + second[:cut]
        assert [row[2] for row in read_all(decode, answer)] == [0, 1, 2]
        assert decode.fetched_until(answer, 0) == 3
    assert decode.fetched_until(b"", 7) == 7
    assert decode.fetched_until(second[:30], 7) == 7


def test_pieces_end_inside_a_batch(decode: ModuleType) -> None:
    decoder = decode.Decoder(bytes(build_batch(numbered(0, 25), codec=Codec.ZSTD)), 0, 100)
    sizes = []
    while (columns := decoder.next_columns(10)) is not None:
        sizes.append(len(columns[0]))
    assert sizes == [10, 10, 5]
    assert decoder.next_columns() is None


def test_headers_are_left_out_unless_asked_for(decode: ModuleType) -> None:
    answer = bytes(build_batch([Record(0, 5, b"k", b"v", (("name", b"x"),))]))
    assert read_all(decode, answer, with_headers=False) == [(b"k", b"v", 0, 5_000, 0)]


def test_a_header_key_that_is_not_text_is_repaired(decode: ModuleType) -> None:
    body = bytearray()
    encode_record(body, Record(0, 5, b"k", b"v", (("ab", b"x"),)), 0, 5)
    answer = assembled(bytes(body).replace(b"ab", b"\xff\xfe"), 1)
    assert read_all(decode, answer)[0][5] == [("��", b"x")]


def test_time_given_by_the_broker(decode: ModuleType) -> None:
    batch = build_batch(numbered(0, 2))
    v2.set_log_append_time(batch, 0, v2.read_header(batch), 123)
    assert [row[3:5] for row in read_all(decode, bytes(batch))] == [(123_000, 1)] * 2


def test_times_that_do_not_fit_are_the_last_that_do(decode: ModuleType) -> None:
    latest = Record(0, 2**63 - 1, b"", b"")
    assert read_all(decode, bytes(build_batch([latest])))[0][3] == 2**63 - 1
    assert read_all(decode, bytes(build_batch([latest._replace(timestamp=-(2**62))])))[0][3] == -(2**63 - 1)


def test_snappy_without_the_framing_of_java(decode: ModuleType) -> None:
    body = bytearray()
    for record in numbered(0, 100):
        encode_record(body, record, 0, 1_700_000_000_000)
    answer = assembled(bytes(cramjam.snappy.compress_raw(bytes(body))), 100, Codec.SNAPPY)
    assert read_all(decode, answer) == expected(numbered(0, 100))


def test_gzip_in_several_members(decode: ModuleType) -> None:
    body = bytearray()
    for record in numbered(0, 10):
        encode_record(body, record, 0, 1_700_000_000_000)
    half = len(body) // 2
    members = b"".join(bytes(cramjam.gzip.compress(part)) for part in (body[:half], body[half:]))
    assert read_all(decode, assembled(members, 10, Codec.GZIP)) == expected(numbered(0, 10))


def test_what_is_left_of_a_cleaned_batch_is_empty(decode: ModuleType) -> None:
    empty = bytes(build_batch([], base_offset=5, base_timestamp=0, last_offset=9))
    assert read_all(decode, empty + bytes(build_batch(numbered(10, 1)))) == expected(numbered(10, 1))
    assert decode.fetched_until(empty, 5) == 10


# --- transactions


def test_aborted_transactions_and_markers_are_skipped(decode: ModuleType) -> None:
    answer = b"".join(
        [
            transactional(numbered(0, 2), 7),  # aborted at 4
            transactional(numbered(2, 2), 8),  # committed at 5
            marker(4, 7, ABORT),
            marker(5, 8, COMMIT),
            transactional(numbered(6, 2), 7),  # committed at 8
            marker(8, 7, COMMIT),
            bytes(build_batch(numbered(9, 1), producer_id=7, producer_epoch=0, base_sequence=9)),
        ]
    )
    assert [row[2] for row in read_all(decode, answer, aborted=[(7, 0)])] == [2, 3, 6, 7, 9]
    assert [row[2] for row in read_all(decode, answer)] == [0, 1, 2, 3, 6, 7, 9]
    assert [row[2] for row in read_all(decode, answer, start=1, end=7, aborted=[(7, 0)])] == [2, 3, 6]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["write", "commit", "abort"])), max_size=40))
@settings(max_examples=100, deadline=None)
def test_only_committed_records_are_read(decode: ModuleType, steps: list[tuple[int, str]]) -> None:
    answer, offset, open_since = b"", 0, {}
    aborted: list[tuple[int, int]] = []
    pending: dict[int, list[int]] = {}
    committed: list[int] = []
    for producer, step in steps:
        if step == "write":
            open_since.setdefault(producer, offset)
            pending.setdefault(producer, []).append(offset)
            answer += transactional(numbered(offset, 1), producer)
        else:
            if step == "abort" and producer in open_since:
                aborted.append((producer, open_since[producer]))
            committed += pending.pop(producer, []) if step == "commit" else []
            pending.pop(producer, None)
            open_since.pop(producer, None)
            answer += marker(offset, producer, COMMIT if step == "commit" else ABORT)
        offset += 1
    # The last stable offset: what is still open is not fetched.
    stable = min(open_since.values(), default=offset)
    found = [row[2] for row in read_all(decode, answer, end=stable, aborted=aborted)]
    assert found == sorted(one for one in committed if one < stable)


# --- hostile bytes


def assembled(body: bytes, count: int, codec: Codec = Codec.NONE, last_offset_delta: int | None = None) -> bytes:
    return bytes(
        assemble_batch(
            body,
            attributes=int(codec),
            base_offset=0,
            leader_epoch=0,
            last_offset_delta=count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp=1_700_000_000_000,
            max_timestamp=1_700_000_000_000,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            count=count,
        )
    )


@pytest.mark.parametrize(
    "batch",
    [
        bytes(build_batch(numbered(0, 3)))[:-1] + b"\x7f",
        struct.pack(">qiib", 0, 100, 0, 1) + bytes(200),
        struct.pack(">qiib", 0, 3, 0, 2) + bytes(200),
        struct.pack(">qiib", -5, 100, 0, 2) + bytes(200),
        assembled(b"", 1),
        assembled(b"\x00", 1),
        assembled(b"\xff" * 20, 1),
        assembled(b"\x02\x00", 1),
        assembled(b"", 2**31 - 1),
        assembled(b"x", 0),
        assembled(b"", 1, Codec.GZIP),
        assembled(b"nonsense", 1, Codec.GZIP),
        assembled(b"nonsense", 1, Codec.SNAPPY),
        assembled(b"\xff\xff\xff\xff\x0f", 1, Codec.SNAPPY),
        assembled(b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff", 1, Codec.SNAPPY),
        assembled(b"nonsense", 1, Codec.LZ4),
        assembled(b"nonsense", 1, Codec.ZSTD),
    ],
)
def test_bytes_that_do_not_add_up_are_an_error(decode: ModuleType, batch: bytes) -> None:
    with pytest.raises(CorruptRecords):
        read_all(decode, batch)


def test_a_codec_that_does_not_exist(decode: ModuleType) -> None:
    batch = bytearray(build_batch(numbered(0, 3)))
    batch[22] = 5
    v2.restamp_crc(batch, 0, len(batch))
    with pytest.raises(CorruptRecords, match="codec 5"):
        read_all(decode, bytes(batch))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_is_refused(decode: ModuleType, codec: Codec) -> None:
    huge = Record(0, 0, b"", bytes(5_000_000))
    with pytest.raises(CorruptRecords, match="more than 1000000 bytes"):
        read_all(decode, bytes(build_batch([huge], codec=codec)), decompressed_bytes_max=1_000_000)
    assert len(read_all(decode, bytes(build_batch([huge], codec=codec)))) == 1


def with_empty_headers(offset: int, count: int) -> bytes:
    """A record as it is in a batch: two bytes for each header, which take eight in Arrow."""
    content = b"\x00\x00" + varint(offset) + b"\x01\x01" + varint(count) + b"\x00\x00" * count
    return varint(len(content)) + content


def varint(number: int) -> bytes:
    value, found = number << 1, bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(found) + bytes([value])


def test_empty_headers_count_for_what_they_take(decode: ModuleType) -> None:
    """Some KB that unfold to many MB: a piece ends after the record that fills it."""
    each = 100_000
    body = b"".join(with_empty_headers(offset, each) for offset in range(6))
    batch = assembled(bytes(cramjam.zstd.compress(body)), 6, Codec.ZSTD)
    assert len(batch) < 2_000
    decoder = decode.Decoder(batch, 0, 100, with_headers=True)
    sizes = []
    while (columns := decoder.next_columns(10_000, 1_500_000)) is not None:
        sizes.append(len(columns[0]))
        assert sum(column.nbytes for column in columns) <= 1_500_000 + each * 9
    assert sizes == [2, 2, 2]
    assert decode.Decoder(batch, 0, 100).next_columns()[2].to_pylist() == list(range(6))


def test_a_record_of_more_than_a_million_headers_is_refused_where_they_are_wanted(decode: ModuleType) -> None:
    batch = assembled(bytes(cramjam.zstd.compress(with_empty_headers(0, 1_000_001))), 1, Codec.ZSTD)
    with pytest.raises(CorruptRecords, match="1000001 headers, of which 1000000 at most are read"):
        decode.Decoder(batch, 0, 100, with_headers=True).next_columns()
    assert len(decode.Decoder(batch, 0, 100).next_columns()[0]) == 1


@pytest.mark.parametrize("codec", list(Codec))
def test_damaged_answers_end_in_an_error_or_in_rows(codec: Codec, decode: ModuleType) -> None:
    """Both kernels agree on every one of them, checksum or not."""
    chance = random.Random(f"damage {codec}")
    whole = bytes(build_batch([Record(n, n, b"key", b"value" * 3, (("h", b"x"),)) for n in range(5)], codec=codec))
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.2:
            del damaged[chance.randrange(61, len(damaged)) :]
        assert outcome(decode, bytes(damaged)) == outcome(decode_pure, bytes(damaged))


def outcome(module: ModuleType, data: bytes) -> Any:
    try:
        return module.fetched_until(data, 0), read_all(module, data, check_crcs=False, aborted=[(-1, 0)])
    except CorruptRecords:
        return "corrupt"


def test_nonsense_is_never_a_crash(decode: ModuleType) -> None:
    chance = random.Random(5)
    for _ in range(1_000):
        data = bytearray(chance.randbytes(chance.randint(0, 300)))
        if len(data) > 62:
            struct.pack_into(">qiib", data, 0, 0, len(data) - 12 - chance.randint(0, 1), 0, 2)
            data[21:27] = bytes([0, chance.choice([0, 0, 0x20, 0x10, 1, 2, 3, 4]), 0, 0, 0, 9])
        assert outcome(decode, bytes(data)) == outcome(decode_pure, bytes(data))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 63, 64, 1_000, 1_001, 12_287, 12_288, 12_289, 50_000])
def test_the_checksum_is_crc32c(decode: ModuleType, size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert decode.crc32c(data) == reference_crc(data)
    if hasattr(decode, "crc32c_by_tables"):
        assert decode.crc32c_by_tables(data) == reference_crc(data)
    assert zlib.crc32(data) != reference_crc(data) or size == 0
