"""Appending to a log and reading it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import read_header
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all, slice_bytes


def test_offsets_follow_one_another_and_the_stamp_is_in_the_file(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert append(log, b"a", b"b") == 0
    assert append(log, b"c") == 2
    data = slice_bytes(log.read(2, 1000, upper_offset=3, min_one=True))
    header = read_header(data)
    assert (header.base_offset, header.leader_epoch, header.size) == (2, 0, len(data))
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_is_taken(tmp_path: Path, kind: type) -> None:
    log = open_log(tmp_path)
    for _ in range(3):
        log.append(kind(bytes(batch(b"x", b"y"))), leader_epoch=7, now_ms=NOW_MS)
    assert [offset for offset, _ in read_all(log)] == list(range(6))
    assert read_header(slice_bytes(log.read(4, 1000, upper_offset=6, min_one=True))).leader_epoch == 7


def test_several_batches_in_one_append(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"first")
    result = log.append(bytes(batch(b"a", b"b") + batch(b"c")), leader_epoch=0, now_ms=NOW_MS)
    assert (result.base_offset, result.last_offset) == (1, 3)
    assert read_all(log) == [(0, b"first"), (1, b"a"), (2, b"b"), (3, b"c")]


def test_replicated_batches_keep_their_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(b"a", leader_epoch=3, base_offset=0), leader_epoch=9, now_ms=NOW_MS, origin=Origin.REPLICATION)
    assert read_header(slice_bytes(log.read(0, 1000, upper_offset=1, min_one=True))).leader_epoch == 3
    with pytest.raises(ApiError) as caught:
        log.append(batch(b"a", base_offset=0), leader_epoch=9, now_ms=NOW_MS, origin=Origin.REPLICATION)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_reading_the_end_is_empty_and_past_it_an_error(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    assert log.read(1, 100, upper_offset=1, min_one=True).size == 0
    for offset in (2, -1):
        with pytest.raises(ApiError) as caught:
            log.read(offset, 100, upper_offset=1, min_one=True)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_at_or_above_the_upper_offset_is_read(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for n in range(200):
        append(log, b"%d" % n, b"x")
    for start in (0, 150, 390):
        for upper in (start, start + 2, start + 4, 398, 400):
            data = slice_bytes(log.read(start, 1 << 20, upper_offset=upper, min_one=True))
            offsets = list(range(start, upper))
            assert [o for o, _ in _records(data)] == offsets


def _records(data: bytes) -> list[tuple[int, bytes | None]]:
    from ottla.records.record import iterate_batches, read_records

    return [(one.offset, one.value) for at, _ in iterate_batches(data) for one in read_records(data, at)]


def test_the_first_batch_is_sent_whole_or_not_at_all(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"x" * 1000)
    append(log, b"y" * 1000)
    whole = len(batch(b"x" * 1000))
    assert log.read(0, 10, upper_offset=2, min_one=True).size == whole
    held_back = log.read(0, 10, upper_offset=2, min_one=False)
    assert (held_back.size, held_back.available) == (0, 2 * whole)
    assert log.read(0, whole - 1, upper_offset=2, min_one=False).size == 0
    assert log.read(0, whole, upper_offset=2, min_one=False).size == whole
    assert log.read(0, whole + 5, upper_offset=2, min_one=True).size == whole + 5
    assert log.read(0, 1 << 20, upper_offset=2, min_one=True).size == 2 * whole


def test_reads_anywhere_in_many_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=5000, index_interval_bytes=200))
    for n in range(300):
        append(log, b"%06d" % n, b"tail")
    assert len(log.segments) > 5
    expected = [(n, b"%06d" % (n // 2) if n % 2 == 0 else b"tail") for n in range(600)]
    assert read_all(log) == expected
    for start in (0, 1, 77, 300, 599):
        assert read_all(log, start, max_bytes=700) == expected[start:]


def test_a_slice_outlives_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"kept")
    piece = log.read(0, 1000, upper_offset=1, min_one=True)
    log.close()
    for path in tmp_path.iterdir():
        path.unlink()
    assert b"kept" in slice_bytes(piece)


def test_a_log_opens_where_it_was_closed(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=5000, index_interval_bytes=200)
    log = open_log(tmp_path, config)
    for n in range(100):
        append(log, b"%d" % n)
    before = read_all(log)
    log.close()
    again = open_log(tmp_path, config)
    assert again.log_end_offset == 100
    assert read_all(again) == before
    assert append(again, b"more") == 100
    assert read_all(again) == [*before, (100, b"more")]


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=1000))
    with pytest.raises(ApiError) as caught:
        append(log, b"x" * 2000)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_the_upper_offset_of_a_slice_is_above_everything_in_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=5000, index_interval_bytes=300))
    for n in range(200):
        append(log, b"%06d" % n, b"tail")
    for start in range(0, 400, 7):
        for size in (1, 300, 1000, 1 << 20):
            piece = log.read(start, size, upper_offset=400, min_one=True)
            last = max(offset for offset, _ in _records(slice_bytes(piece)))
            upper = log.upper_offset_of(piece)
            assert last < upper <= 400
            assert upper <= last + 12, "and not far above"
