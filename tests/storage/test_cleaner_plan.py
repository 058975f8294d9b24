"""Which log is compacted next, and how much of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.records.batch import stamp
from ottla.storage.compaction.plan import dirtiest, group_segments, survey
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_manager import LogManager
from ottla.storage.results import Origin
from ottla.storage.segments.indexes import INT32_MAX
from tests.storage.batches import NOW_MS, open_log, read_all
from tests.storage.cleaning import COMPACT, clean, clean_all, keyed, pairs, put
from tests.support.manual_clock import ManualClock

HOUR_MS = 3_600_000


def dirty_log(directory: Path, clean_batches: int, dirty_batches: int, config: LogConfig = COMPACT) -> Log:
    """A log with this much of each, in segments of one batch."""
    log = open_log(directory, config)
    for n in range(clean_batches + dirty_batches):
        put(log, (b"key-%02d" % n, b"v" * 100))
        log.roll(NOW_MS)
    log.cleaned_offset = clean_batches
    return log


def test_the_log_with_the_largest_dirty_share_goes_first(tmp_path: Path) -> None:
    half = dirty_log(tmp_path / "half", 4, 5)
    most = dirty_log(tmp_path / "most", 1, 9)
    little = dirty_log(tmp_path / "little", 9, 1)
    found = dirtiest([half, most, little], NOW_MS)
    assert found is not None
    assert (found.log, found.ratio) == (most, 0.9)
    found = dirtiest([half, little], NOW_MS)
    assert found is not None
    assert found.log is half
    assert dirtiest([little], NOW_MS) is None


def test_the_share_must_be_above_the_least_not_at_it(tmp_path: Path) -> None:
    log = dirty_log(tmp_path, 5, 5)
    assert survey(log, NOW_MS).ratio == 0.5
    assert dirtiest([log], NOW_MS) is None
    log.set_config(replace(COMPACT, min_cleanable_dirty_ratio=0.49))
    assert dirtiest([log], NOW_MS) is not None


def test_what_is_not_compacted_empty_failed_or_clean_is_not_chosen(tmp_path: Path) -> None:
    logs = [dirty_log(tmp_path / name, 0, 5) for name in ("delete", "failed", "clean")]
    logs.append(open_log(tmp_path / "empty", COMPACT))
    logs[0].set_config(LogConfig())
    logs[1].fail("for a test")
    clean_all(logs[2])
    assert dirtiest(logs, NOW_MS) is None


def test_young_records_are_left_alone(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    log = open_log(tmp_path, replace(COMPACT, min_compaction_lag_ms=HOUR_MS))
    for _ in range(4):
        put(log, (b"a", b"1"), timestamp=clock.now_ms())
        log.roll(clock.now_ms())
        clock.advance(HOUR_MS // 2)
    # Appended 120, 90, 60 and 30 minutes ago; one of exactly an hour may go.
    assert survey(log, clock.now_ms()).upper_offset == 3
    clean(log, clock.now_ms())
    assert [offset for offset, _, _ in pairs(log)] == [2, 3]
    assert survey(log, clock.now_ms()).dirty_bytes == 0
    clock.advance(HOUR_MS)
    assert survey(log, clock.now_ms()).upper_offset == 4


def test_a_record_that_waited_too_long_makes_its_log_due(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    log = dirty_log(tmp_path, 9, 1, replace(COMPACT, max_compaction_lag_ms=HOUR_MS))
    assert dirtiest([log], clock.now_ms()) is None
    clock.advance(HOUR_MS)
    assert dirtiest([log], clock.now_ms()) is None
    clock.advance(1)
    found = dirtiest([log], clock.now_ms())
    assert found is not None
    assert found.overdue
    clean(log, clock.now_ms())
    assert dirtiest([log], clock.now_ms()) is None


def test_with_a_largest_lag_the_active_segment_rolls_in_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(COMPACT, max_compaction_lag_ms=HOUR_MS))
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"), timestamp=NOW_MS + HOUR_MS)
    assert len(log.segments) == 1
    put(log, (b"a", b"3"), timestamp=NOW_MS + HOUR_MS + 1)
    assert len(log.segments) == 2


def test_a_checkpoint_outside_of_the_log_means_from_its_start(tmp_path: Path) -> None:
    log = dirty_log(tmp_path, 0, 5)
    log.cleaned_offset = 99
    assert survey(log, NOW_MS).first_dirty_offset == 0
    log.cleaned_offset = 1
    log.delete_records(3)
    assert survey(log, NOW_MS).first_dirty_offset == 3


def test_truncating_a_log_truncates_what_is_known_to_be_clean(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    for n in range(20):
        put(log, (b"key-%d" % (n % 3), b"%d" % n))
    clean_all(log)
    assert log.cleaned_offset == 20
    log.truncate_to(18, NOW_MS)
    assert log.cleaned_offset == 18
    for n in range(18, 25):
        put(log, (b"key-%d" % (n % 3), b"%d" % n))
    clean_all(log)
    assert [offset for offset, _, _ in pairs(log)] == [22, 23, 24]


def test_how_far_a_log_is_clean_is_remembered_in_kafkas_format(tmp_path: Path) -> None:
    def manager() -> LogManager:
        one = LogManager(
            [tmp_path], node_id=1, cluster_id="cluster-a", clock=ManualClock(NOW_MS), default_config=COMPACT
        )
        one.open()
        return one

    first = manager()
    log = first.create(TopicPartition("a", 0), random_topic_id(), COMPACT)
    other = first.create(TopicPartition("b", 0), random_topic_id(), COMPACT)
    for one in (log, other):
        for n in range(10):
            put(one, (b"k", b"%d" % n))
    clean_all(log)
    first.checkpointing.cleaned(log)
    log.truncate_to(8, NOW_MS)
    first.close()
    assert (tmp_path / checkpoints.CLEANER_OFFSETS).read_text() == "0\n1\na 0 8\n"
    second = manager()
    assert [one.cleaned_offset for one in second.logs.values()] == [8, 0]
    # A partition of the same name that is made anew does not inherit it.
    second.delete(TopicPartition("a", 0))
    second.create(TopicPartition("a", 0), random_topic_id(), COMPACT)
    second.close(clean=False)
    assert (tmp_path / checkpoints.CLEANER_OFFSETS).read_text() == "0\n0\n"


def test_retention_works_beside_compaction(tmp_path: Path) -> None:
    config = replace(COMPACT, cleanup_delete=True, retention_ms=HOUR_MS)
    log = open_log(tmp_path, config)
    for n in range(60):
        put(log, (b"key-%d" % (n % 5), b"v" * 40), timestamp=NOW_MS + n * 60_000)
    clean_all(log, NOW_MS + HOUR_MS)
    assert [offset for offset, _, _ in pairs(log)] == [55, 56, 57, 58, 59]
    put(log, (b"key-0", b"late"), timestamp=NOW_MS + 2 * HOUR_MS)
    log.delete_old_segments(NOW_MS + 3 * HOUR_MS)
    assert pairs(log) == [(60, b"key-0", b"late")]
    assert log.log_start_offset == 60
    assert survey(log, NOW_MS + 3 * HOUR_MS).first_dirty_offset == 60
    assert read_all(log) == [(60, b"late")]


def test_a_compacted_log_without_retention_deletes_nothing_by_age(tmp_path: Path) -> None:
    log = dirty_log(tmp_path, 0, 5)
    assert log.delete_old_segments(NOW_MS + 1000 * HOUR_MS) == 0


def test_groups_respect_size_index_and_offset_range(tmp_path: Path) -> None:
    log = dirty_log(tmp_path / "a", 0, 30)
    size = log.segments[0].size
    log.set_config(replace(COMPACT, segment_bytes=size * 4))
    assert [len(group) for group in group_segments(log, 30)] == [4] * 7 + [2]
    assert [len(group) for group in group_segments(log, 10)] == [4, 4, 2]
    log.set_config(replace(COMPACT, segment_bytes=1 << 20, segment_index_bytes=12 * 5))
    assert [len(group) for group in group_segments(log, 30)] == [5] * 6

    wide = open_log(tmp_path / "b", replace(COMPACT, segment_bytes=1 << 20))
    for offset in (0, 10, INT32_MAX - 5, INT32_MAX + 5, 2 * INT32_MAX):
        data = keyed((b"a", b"1"))
        stamp(data, 0, offset, 0)
        wide.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION)
        wide.high_watermark = wide.log_end_offset
        wide.roll(NOW_MS)
    bases = [[one.base_offset for one in group] for group in group_segments(wide, wide.log_end_offset)]
    assert [offset for group in bases for offset in group] == [one.base_offset for one in wide.segments[:-1]]
    assert all(wide.segments[-1].base_offset - group[0] > INT32_MAX or group is bases[-1] for group in bases)
    clean_all(wide)
    assert [offset for offset, _, _ in pairs(wide)] == [2 * INT32_MAX]
