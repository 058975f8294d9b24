"""Compaction of one log: what stays, what goes, and what does not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ApiError
from ottla.records.compression import Codec
from ottla.records.record import iterate_batches, read_records
from ottla.storage.compaction.compactor import CorruptSegment, compact
from ottla.storage.compaction.job import GroupResult
from ottla.storage.compaction.plan import make_job, survey
from ottla.storage.compaction.swap import SegmentsChanged, is_unchanged, swap_in
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW_MS, batch, open_log, read_all, slice_bytes
from tests.storage.cleaning import (
    COMPACT,
    DAY_MS,
    clean,
    clean_all,
    headers,
    leftovers,
    pairs,
    put,
    records,
    run_round,
    table,
)


def test_of_each_key_the_last_value_stays_at_its_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"a", b"3"))
    result = clean(log)
    assert pairs(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3")]
    assert (result.end_offset, result.keys, result.records_removed) == (5, 3, 2)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_codec_and_bounds(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, *((b"k%d" % n, b"old" * 20) for n in range(10)), codec=codec)
    put(log, *((b"k%d" % n, b"new" * 20) for n in range(0, 10, 2)), codec=codec)
    before = [(header.base_offset, header.last_offset) for _, _, header in headers(log)]
    clean(log)
    after = list(headers(log))
    assert [(header.base_offset, header.last_offset) for _, _, header in after] == before
    assert {header.codec for _, _, header in after} == {codec}
    assert [one.offset for one in records(log)] == [1, 3, 5, 7, 9, 10, 11, 12, 13, 14]
    # Timestamps are the records' own still, and the header's maximum is that of the records left.
    for data, at, header in after:
        stamps = [one.timestamp for one in read_records(data, at)]
        assert stamps == [NOW_MS + one.offset - header.base_offset for one in read_records(data, at)]
        assert header.max_timestamp == max(stamps)


def test_a_batch_that_loses_nothing_is_the_same_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"x", b"1"))
    put(log, (b"a", b"2"))
    original = log.segments[0].path(".log").read_bytes()
    (_, _), (second, middle), (third, last) = iterate_batches(original)
    clean(log)
    cleaned = log.segments[0].path(".log").read_bytes()
    assert cleaned.endswith(original[second : second + middle.size] + original[third : third + last.size])


def test_the_active_segment_is_not_touched(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)
    put(log, (b"a", b"2"))
    put(log, (b"a", b"3"))
    clean(log, roll=False)
    # The key's later records are in the active segment, which the map does not cover either.
    assert pairs(log) == [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"a", b"3")]
    assert log.cleaned_offset == 1


def test_nothing_from_the_high_watermark_on_is_touched(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(4):
        put(log, (b"a", b"%d" % n))
        log.roll(NOW_MS)
    log.high_watermark = 3
    assert survey(log, NOW_MS).upper_offset == 3
    clean(log)
    assert pairs(log) == [(2, b"a", b"2"), (3, b"a", b"3")]


def test_segments_are_joined_up_to_the_size_of_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(200):
        put(log, (b"key-%d" % (n % 7), b"v" * 50))
    clean_all(log)
    small = len(log.segments)
    for n in range(50):
        put(log, (b"key-%d" % (n % 7), b"w" * 50))
    clean_all(log)
    # What the first round left of each segment is so little that the second makes one of them all.
    assert len(log.segments) < small / 2
    assert all(one.size <= COMPACT.segment_bytes for one in log.segments)
    assert [one.base_offset for one in log.segments] == sorted(one.base_offset for one in log.segments)
    assert table(log) == {b"key-%d" % n: b"w" * 50 for n in range(7)}


def test_a_segment_that_loses_nothing_is_not_written_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(40):
        put(log, (b"key-%d" % n, b"v" * 100))
    clean_all(log)
    inodes = [one.path(".log").stat().st_ino for one in log.segments]
    put(log, (b"other", b"1"))
    result = clean(log)
    assert result.records_removed == 0
    after = [one.path(".log").stat().st_ino for one in log.segments]
    assert after[: len(inodes) - 2] == inodes[:-2]


def test_a_tombstone_stays_for_its_retention_and_then_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None), (b"c", b"1"))
    clean(log, NOW_MS)
    assert pairs(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    horizon = NOW_MS + DAY_MS
    marked = [header for _, _, header in headers(log) if header.has_delete_horizon]
    assert [header.base_timestamp for header in marked] == [horizon]
    # The records' own times are as they were, although the base they are counted from is the horizon.
    assert [one.timestamp for one in records(log)] == [NOW_MS + 1, NOW_MS, NOW_MS + 1]
    put(log, (b"d", b"1"))
    clean(log, horizon - 1)
    assert (2, b"a", None) in pairs(log)
    assert [header.base_timestamp for _, _, header in headers(log) if header.has_delete_horizon] == [horizon]
    put(log, (b"e", b"1"))
    clean(log, horizon)
    assert pairs(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"d", b"1"), (5, b"e", b"1")]


def test_a_tombstone_that_is_superseded_goes_at_once(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    clean(log)
    assert pairs(log) == [(2, b"a", b"2")]


def test_records_without_a_key_go(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (None, b"x"), (b"a", b"1"), (None, None))
    put(log, (None, b"only"))
    put(log, (b"b", b""))
    clean(log)
    assert pairs(log) == [(1, b"a", b"1"), (4, b"b", b"")]


def test_long_keys_and_many_records_in_a_batch(tmp_path: Path) -> None:
    config = LogConfig(cleanup_compact=True, segment_bytes=1 << 20)
    log = open_log(tmp_path, config)
    keys = [b"%d" % n + b"k" * (n % 200) for n in range(300)]
    put(log, *((key, b"old" * (n % 90)) for n, key in enumerate(keys)))
    put(log, *((key, b"new" * (n % 90)) for n, key in enumerate(keys) if n % 3))
    clean(log)
    expected = {key: (b"new" if n % 3 else b"old") * (n % 90) for n, key in enumerate(keys)}
    assert table(log) == expected
    assert len(records(log)) == 300


def test_a_small_map_takes_several_rounds(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(150):
        put(log, (b"key-%d" % (n % 50), b"%d" % n))
    rounds = clean_all(log, map_bytes_max=3000)
    assert rounds > 3
    assert len(records(log)) == 50
    assert table(log) == {b"key-%d" % (n % 50): b"%d" % n for n in range(100, 150)}


def test_one_batch_with_more_keys_than_the_map_has_room_for(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, *((b"%d" % n, b"1") for n in range(50)))
    put(log, *((b"%d" % n, b"2") for n in range(50)))
    clean_all(log, map_bytes_max=1)
    assert table(log) == {b"%d" % n: b"2" for n in range(50)}
    assert len(records(log)) == 50


def test_reading_from_the_middle_of_a_gap_gives_what_follows(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(100):
        put(log, (b"same", b"%d" % n))
    put(log, (b"other", b"x"))
    clean_all(log)
    assert pairs(log) == [(99, b"same", b"99"), (100, b"other", b"x")]
    for offset in (0, 1, 50, 98, 99):
        piece = log.read(offset, 1000, upper_offset=log.high_watermark, min_one=True)
        assert b"99" in slice_bytes(piece)
    assert read_all(log, 37) == [(99, b"99"), (100, b"x")]
    assert read_all(log, 100) == [(100, b"x")]
    with pytest.raises(ApiError):
        log.read(102, 1000, upper_offset=102, min_one=True)


def test_a_reader_of_an_old_segment_is_not_disturbed(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(30):
        put(log, (b"a", b"%d" % n))
    piece = log.read(0, 1 << 20, upper_offset=30, min_one=True)
    before = slice_bytes(piece)
    clean_all(log)
    assert slice_bytes(piece) == before


def test_the_log_is_the_same_after_it_was_opened_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(100):
        put(log, (b"key-%d" % (n % 9), b"%d" % n))
    clean_all(log)
    before, end = pairs(log), log.log_end_offset
    log.close()
    again = open_log(tmp_path, COMPACT, recovery_point=end)
    assert (pairs(again), again.log_end_offset) == (before, end)
    assert read_all(again) == [(offset, value) for offset, _, value in before]
    assert put(again, (b"key-1", b"later")) == end


def test_a_log_whose_segments_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(100):
        put(log, (b"key-%d" % (n % 9), b"%d" % n))
    log.roll(NOW_MS)
    job = make_job(survey(log, NOW_MS), NOW_MS, NOW_MS, map_bytes_max=1 << 20)
    log.delete_records(60)
    log.delete_old_segments(NOW_MS)
    before = pairs(log)
    with pytest.raises(FileNotFoundError):  # its files went before the worker looked
        run_round(log, job)
    job = make_job(survey(log, NOW_MS), NOW_MS, NOW_MS, map_bytes_max=1 << 20)
    groups: list[GroupResult] = []
    compact(job, groups.append)
    log.truncate_to(90, NOW_MS)
    assert not is_unchanged(log, job.groups)
    for group in groups[:-1]:
        swap_in(log, job, group)
    with pytest.raises(SegmentsChanged):
        swap_in(log, job, groups[-1])
    assert pairs(log) == [one for one in before if one[0] in {offset for offset, _, _ in pairs(log)}]
    assert pairs(log)[-1][0] == 89
    assert leftovers(tmp_path) == []


def test_a_log_that_is_truncated_under_the_worker_is_not_taken_for_damaged(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(100):
        put(log, (b"key-%d" % (n % 9), b"%d" % n))
    log.roll(NOW_MS)
    job = make_job(survey(log, NOW_MS), NOW_MS, NOW_MS, map_bytes_max=1 << 20)
    log.truncate_to(90, NOW_MS)
    with pytest.raises(CorruptSegment):
        compact(job, lambda group: None)
    assert not is_unchanged(log, job.groups)
    assert leftovers(tmp_path) == []


def test_a_topic_that_is_no_longer_compacted_keeps_everything(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"), (b"a", b"2"))
    log.roll(NOW_MS)
    job = make_job(survey(log, NOW_MS), NOW_MS, NOW_MS, map_bytes_max=1 << 20)
    log.set_config(LogConfig())
    with pytest.raises(SegmentsChanged):
        run_round(log, job)
    assert len(pairs(log)) == 2
    assert leftovers(tmp_path) == []


def test_a_damaged_batch_stops_the_round_and_changes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(20):
        put(log, (b"a", b"%d" % n))
    log.roll(NOW_MS)
    path = log.segments[0].path(".log")
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptSegment, match="wrong CRC"):
        clean(log)
    assert path.read_bytes() == data
    assert leftovers(tmp_path) == []


def test_a_batch_of_garbage_with_a_good_crc_stays(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"))
    garbage = batch(b"x" * 30)
    garbage[61:] = b"\xff" * (len(garbage) - 61)
    from ottla.records.batch import restamp_crc

    restamp_crc(garbage, 0, len(garbage))
    log.append(garbage, leader_epoch=0, now_ms=NOW_MS)
    put(log, (b"a", b"2"))
    result = clean(log)
    assert result.batches_unreadable == 1
    assert [header.base_offset for _, _, header in headers(log)] == [1, 2]


def test_a_log_that_starts_inside_a_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", b"2"))
    put(log, (b"b", b"3"))
    log.delete_records(2)
    clean(log)
    assert [one[0] for one in pairs(log) if one[0] >= 2] == [2, 4]


def test_everything_below_a_tombstone_that_outlived_all(tmp_path: Path) -> None:
    """A log may end up with nothing in it but its last batch, empty, which remembers where the log ended."""
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    clean(log, NOW_MS)
    log.cleaned_offset = 0
    clean(log, NOW_MS + DAY_MS)
    assert [(header.base_offset, header.record_count) for _, _, header in headers(log)] == [(1, 0)]
    assert read_all(log) == []
    log.close()
    assert open_log(tmp_path, COMPACT).log_end_offset == 2
