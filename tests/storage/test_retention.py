"""What is deleted, and above all what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.common.steps import to_the_end
from ottla.storage.log import Log
from ottla.storage.log_config import DAY_MS, LogConfig
from ottla.storage.log_manager import LogManager
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all
from tests.support.manual_clock import ManualClock

ONE = len(batch(b"x"))
# Two batches per segment.
SMALL = LogConfig(segment_bytes=2 * ONE, retention_ms=-1)


def fill(directory: Path, config: LogConfig = SMALL, count: int = 10) -> Log:
    """One record a second; batches of one record."""
    log = open_log(directory, config)
    for n in range(count):
        append(log, b"x", timestamp=NOW_MS + n * 1000)
    return log


def offsets(log: Log) -> list[int]:
    return [offset for offset, _ in read_all(log)]


def test_by_age_of_the_newest_record_of_a_segment(tmp_path: Path) -> None:
    log = fill(tmp_path, replace(SMALL, retention_ms=5000))
    assert log.delete_old_segments(NOW_MS + 8000) == 1
    assert (log.log_start_offset, offsets(log)) == (2, list(range(2, 10)))
    assert log.delete_old_segments(NOW_MS + 8000) == 0
    with pytest.raises(ApiError) as caught:
        log.read(1, 100, upper_offset=10, min_one=True)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_everything_may_go_and_offsets_go_on(tmp_path: Path) -> None:
    log = fill(tmp_path, replace(SMALL, retention_ms=5000))
    assert log.delete_old_segments(NOW_MS + 60_000) == 5
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (10, 10, 0)
    assert append(log, b"next") == 10
    again = open_log(tmp_path, SMALL)
    assert offsets(again) == [10]


def test_by_size(tmp_path: Path) -> None:
    log = fill(tmp_path, replace(SMALL, retention_bytes=5 * ONE))
    assert log.delete_old_segments(NOW_MS) == 2
    assert offsets(log) == list(range(4, 10))


def test_nothing_above_the_high_watermark(tmp_path: Path) -> None:
    log = fill(tmp_path, replace(SMALL, retention_ms=0))
    log.high_watermark = 5
    log.delete_old_segments(NOW_MS + DAY_MS)
    assert log.log_start_offset == 4
    log.high_watermark = 10
    log.delete_old_segments(NOW_MS + DAY_MS)
    assert log.log_start_offset == 10


def test_compacted_only_logs_are_left_alone(tmp_path: Path) -> None:
    config = replace(SMALL, retention_ms=0, retention_bytes=0, cleanup_delete=False, cleanup_compact=True)
    log = fill(tmp_path, config)
    assert log.delete_old_segments(NOW_MS + DAY_MS) == 0
    log.delete_records(5)
    assert log.delete_old_segments(NOW_MS + DAY_MS) == 2


def test_records_of_the_future_stay_until_their_time_has_come_and_gone(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, retention_ms=5000))
    later_ms = NOW_MS + 30 * DAY_MS
    log.append(batch(b"x", timestamp=later_ms), leader_epoch=0, now_ms=NOW_MS)
    log.high_watermark = 1
    assert log.delete_old_segments(NOW_MS + 5001) == 0
    assert log.delete_old_segments(later_ms + 5000) == 0
    assert log.delete_old_segments(later_ms + 5001) == 1


def test_records_without_timestamps_age_by_the_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, retention_ms=5000))
    log.append(batch(b"x", timestamp=-1), leader_epoch=0, now_ms=NOW_MS)
    log.high_watermark = 1
    assert log.delete_old_segments(NOW_MS + 5000) == 0
    assert log.delete_old_segments(NOW_MS + 5001) == 1


@pytest.mark.parametrize("damage", ["zero", "cut", "delete", "swap"])
def test_a_damaged_time_index_deletes_nothing_early(tmp_path: Path, damage: str) -> None:
    config = LogConfig(segment_bytes=10 * ONE, index_interval_bytes=ONE, retention_ms=5000)
    log = fill(tmp_path / "log", config, 30)
    log.close()
    other = fill(tmp_path / "other", replace(config, segment_bytes=7 * ONE), 30)
    other.close()
    path = log.segments[0].path(".timeindex")
    if damage == "zero":
        path.write_bytes(bytes(path.stat().st_size))
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:12])
    elif damage == "delete":
        path.unlink()
    else:
        path.write_bytes(other.segments[0].path(".timeindex").read_bytes())
    again = open_log(tmp_path / "log", config, clean=True)
    again.high_watermark = 30
    assert again.delete_old_segments(NOW_MS + 9000 + 5000) == 0
    assert again.delete_old_segments(NOW_MS + 9000 + 5001) == 1


def test_delete_records(tmp_path: Path) -> None:
    log = fill(tmp_path)
    assert log.delete_records(3) == 3
    assert offsets(log) == list(range(3, 10))
    assert log.delete_records(1) == 3
    for bad in (11, -2):
        with pytest.raises(ApiError) as caught:
            log.delete_records(bad)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    log.high_watermark = 9
    assert log.delete_records(-1) == 9
    assert log.delete_old_segments(NOW_MS) == 4
    assert offsets(log) == [9]


def test_deleted_files_wait_and_open_slices_stay_readable(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = replace(SMALL, retention_ms=5000, file_delete_delay_ms=1000)
    logs = LogManager([tmp_path], node_id=1, cluster_id="c", clock=clock, default_config=config)
    logs.open()
    log = logs.create(TopicPartition("t", 0), random_topic_id(), config)
    for n in range(6):
        append(log, b"%d" % n, timestamp=NOW_MS + n)
    piece = log.read(0, 1000, upper_offset=6, min_one=True)
    clock.advance(10_000)
    to_the_end(logs.retain_in_steps(clock.now_ms()))
    names = {path.name for path in log.dir.iterdir()}
    assert {"00000000000000000000.log.deleted", "00000000000000000006.log"} <= names
    clock.advance(1000)
    removal = logs.doomed.tick()
    assert removal is not None
    removal.result()
    assert not list(log.dir.glob("*.deleted"))
    assert piece.size and piece.file >= 0
    logs.close()


def test_a_clock_that_jumps_ahead_deletes_nothing_early(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = replace(SMALL, retention_ms=DAY_MS)
    logs = LogManager([tmp_path], node_id=1, cluster_id="c", clock=clock, default_config=config)
    logs.open()
    log = logs.create(TopicPartition("t", 0), random_topic_id(), config)
    append(log, b"x", timestamp=NOW_MS)
    for jump in (1000 * DAY_MS, -1000 * DAY_MS):
        clock.set_wall(NOW_MS + jump)
        to_the_end(logs.retain_in_steps(clock.now_ms()))
        assert log.log_start_offset == 0
    clock.set_wall(NOW_MS)
    clock.advance(DAY_MS)
    to_the_end(logs.retain_in_steps(clock.now_ms()))
    assert log.log_start_offset == 0
    clock.advance(1)
    to_the_end(logs.retain_in_steps(clock.now_ms()))
    assert log.log_start_offset == 1
    logs.close()


def test_a_clock_that_stays_ahead_is_believed_after_a_day(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = replace(SMALL, retention_ms=10 * DAY_MS)
    logs = LogManager([tmp_path], node_id=1, cluster_id="c", clock=clock, default_config=config)
    logs.open()
    log = logs.create(TopicPartition("t", 0), random_topic_id(), config)
    append(log, b"x", timestamp=NOW_MS)
    clock.set_wall(NOW_MS + 1000 * DAY_MS)
    to_the_end(logs.retain_in_steps(clock.now_ms()))
    clock.advance(DAY_MS - 1)
    to_the_end(logs.retain_in_steps(clock.now_ms()))
    assert log.log_start_offset == 0
    clock.advance(1)
    to_the_end(logs.retain_in_steps(clock.now_ms()))
    assert log.log_start_offset == 1
    logs.close()
