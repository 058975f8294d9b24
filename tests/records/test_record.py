"""Records inside batches: what is built is read, and garbage is an error."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import batch as v2
from ottla.records.compression import Codec, DecompressionError
from ottla.records.record import CorruptRecords, Record, build_batch, iterate_batches, read_records

maybe_bytes = st.none() | st.binary(max_size=50)
headers = st.lists(st.tuples(st.text(max_size=8), maybe_bytes), max_size=3).map(tuple)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2**41), maybe_bytes, maybe_bytes, headers), min_size=1, max_size=20),
    codec=st.sampled_from(list(Codec)),
    base=st.integers(0, 2**40),
)
def test_what_is_built_is_read(rows: list, codec: Codec, base: int) -> None:
    records = [Record(base + n, *row) for n, row in enumerate(rows)]
    raw = build_batch(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=3)
    assert list(read_records(raw)) == records
    header = v2.read_header(raw)
    assert header.size == len(raw)
    assert header.crc == v2.compute_crc(raw, 0, len(raw))
    assert header.max_timestamp == max(one.timestamp for one in records)


def test_stamping_offset_and_epoch_leaves_the_crc_right() -> None:
    raw = build_batch([Record(0, 5, b"k", b"v")])
    v2.stamp(raw, 0, 1234, 9)
    header = v2.read_header(raw)
    assert (header.base_offset, header.leader_epoch) == (1234, 9)
    assert header.crc == v2.compute_crc(raw, 0, len(raw))
    assert next(iter(read_records(raw))).offset == 1234


def test_log_append_time_is_the_time_of_every_record() -> None:
    raw = build_batch([Record(0, 5, b"k", b"v"), Record(1, 50, b"k", b"v")])
    v2.set_log_append_time(raw, 0, v2.read_header(raw), 777)
    assert [one.timestamp for one in read_records(raw)] == [777, 777]
    assert v2.read_header(raw).crc == v2.compute_crc(raw, 0, len(raw))


def test_sequences_wrap() -> None:
    raw = build_batch(
        [Record(n, 0, None, b"") for n in range(3)], producer_id=1, producer_epoch=0, base_sequence=2**31 - 2
    )
    assert v2.read_header(raw).last_sequence == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_flipped_bytes_are_an_error_or_other_records_but_never_a_crash(codec: Codec) -> None:
    rng = random.Random(1)
    whole = build_batch([Record(n, n, b"key%d" % n, b"value" * 9, (("h", b"x"),)) for n in range(20)], codec=codec)
    for _ in range(300):
        raw = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            raw[rng.randrange(v2.HEADER_SIZE, len(raw))] = rng.randrange(256)
        try:
            list(read_records(raw, limit_bytes=1_000_000))
        except (CorruptRecords, DecompressionError):
            pass


def test_iteration_stops_before_a_cut_batch() -> None:
    first, second = build_batch([Record(0, 0, None, b"a")]), build_batch([Record(1, 0, None, b"b")])
    both = bytes(first + second)
    assert [position for position, _ in iterate_batches(both)] == [0, len(first)]
    for size in range(len(first), len(both)):
        assert [position for position, _ in iterate_batches(both[:size])] == [0]
