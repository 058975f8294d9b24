"""When a new segment begins."""

from __future__ import annotations

from pathlib import Path

from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all

ONE = len(batch(b"x"))


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_by_size(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=3 * ONE))
    for _ in range(7):
        append(log, b"x")
    assert bases(log) == [0, 3, 6]
    assert all(segment.size <= 3 * ONE for segment in log.segments)


def test_by_time_from_the_first_batch_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for timestamp in (5000, 5500, 6000, 6001, 6500, 7002):
        append(log, b"x", timestamp=timestamp)
    assert bases(log) == [0, 3, 5]


def test_by_time_after_a_restart(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1000)
    log = open_log(tmp_path, config)
    append(log, b"x", timestamp=5000)
    append(log, b"x", timestamp=5900)
    log.close()
    again = open_log(tmp_path, config, clean=True)
    append(again, b"x", timestamp=6000)
    append(again, b"x", timestamp=6001)
    assert bases(again) == [0, 3]


def test_by_the_clock_when_batches_have_no_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for wait in (0, 900, 1000, 1001, 1500):
        log.append(batch(b"x", timestamp=-1), leader_epoch=0, now_ms=NOW_MS + wait)
    assert bases(log) == [0, 3]


def test_jitter_only_makes_it_earlier(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000, segment_jitter_ms=500))
    for n in range(200):
        append(log, b"x", timestamp=NOW_MS + n * 100)
    spans = [b - a for a, b in zip(bases(log)[1:], bases(log)[2:], strict=False)]
    assert set(spans) <= {6, 7, 8, 9, 10, 11}
    assert len(set(spans)) > 1


def test_compacted_topics_roll_within_the_compaction_lag(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_compact=True, max_compaction_lag_ms=500))
    for timestamp in (5000, 5400, 5501):
        append(log, b"x", timestamp=timestamp)
    assert bases(log) == [0, 2]


def test_by_a_full_index(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for n in range(20):
        append(log, b"x", timestamp=NOW_MS + n)
    # 48 bytes hold six offset entries and four time entries, of which one is kept free; the first batch has none.
    assert bases(log) == [0, 4, 8, 12, 16]
    assert read_all(log) == [(n, b"x") for n in range(20)]


def test_before_offsets_leave_the_range_of_an_index(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    far = 2**31 - 1

    def replicate(offset: int) -> None:
        data = batch(b"x", base_offset=0)
        data[0:8] = offset.to_bytes(8, "big")
        log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION)

    for offset in (0, 5, far, far + 1, far + 2, 3 * far):
        replicate(offset)
    assert bases(log) == [0, far + 1, 3 * far]
    assert [offset for offset, _ in read_all(log)] == [0, 5, far, far + 1, far + 2, 3 * far]


def test_a_changed_setting_counts_at_once(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(4):
        append(log, b"x")
    log.set_config(LogConfig(segment_bytes=3 * ONE))
    append(log, b"x")
    assert bases(log) == [0, 4]
