"""Records that were synced and are gone: where the first of them is missing is known, and a replica that follows others
gives up what lies behind it. Found by asking what a follower does that lost a segment: it never fetched it again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.segment import Segment
from tests.storage.batches import NOW_MS, append, open_log, read_all
from tests.storage.test_recovery import COMPACTED, SMALL, boundaries, fill


def remove(segment: Segment) -> None:
    for path in segment.paths():
        path.unlink(missing_ok=True)


def empty(segment: Segment) -> None:
    os.truncate(segment.path(".log"), 0)


def halve(segment: Segment) -> None:
    """Between two batches: no broken one is left to see."""
    path = segment.path(".log")
    os.truncate(path, boundaries(path)[3])


def tear(segment: Segment) -> None:
    path = segment.path(".log")
    os.truncate(path, boundaries(path)[3] + 20)


Damage = Callable[[Segment], None]
KEPT = {remove: 0, empty: 0, halve: 3, tear: 3}


@pytest.mark.parametrize("is_far_back", [True, False], ids=["far below the recovery point", "just below it"])
@pytest.mark.parametrize("damage", KEPT)
def test_a_hole_between_segments_is_known_and_cut_at(tmp_path: Path, damage: Damage, is_far_back: bool) -> None:
    log = fill(tmp_path)
    _, second, third = log.segments[:3]
    damage(second)
    again = open_log(tmp_path, SMALL, recovery_point=30 if is_far_back else third.base_offset + 1)
    hole = second.base_offset + KEPT[damage]
    # The only copy goes on; what is left can be read.
    assert (again.hole, again.log_end_offset) == (hole, 30)
    assert read_all(again, start=third.base_offset)[-1] == (29, b"0029")
    again.cut_at_hole(NOW_MS)
    assert (again.hole, again.log_end_offset) == (None, hole)
    _is_whole(again, hole)


@pytest.mark.parametrize("at", [8, 9, 10, 11, 16, 26])
def test_a_hole_inside_a_segment_is_known_and_cut_at(tmp_path: Path, at: int) -> None:
    config = LogConfig(index_interval_bytes=150)
    log = fill(tmp_path, 30, config)
    path = log.segments[-1].path(".log")
    data, position = bytearray(path.read_bytes()), boundaries(path)[10]
    data[position + at] ^= 0x41
    path.write_bytes(data)
    # (Without its index the whole segment is read: what lies far below the recovery point is not, at a start.)
    again = open_log(tmp_path, config, recovery_point=30)
    assert (again.hole, again.log_end_offset) == (10, 30)
    again.cut_at_hole(NOW_MS)
    assert path.stat().st_size == position, "what is appended now follows the last batch before the hole"
    _is_whole(again, 10)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_ends_before_what_was_synced_is_cut_at_its_end(tmp_path: Path, is_clean: bool) -> None:
    config = LogConfig(index_interval_bytes=150)
    log = fill(tmp_path, 30, config)
    path = log.segments[-1].path(".log")
    os.truncate(path, boundaries(path)[20])
    again = open_log(tmp_path, config, recovery_point=30, clean=is_clean)
    assert (again.hole, again.log_end_offset) == (20, 30)
    # It is still known when the next start finds the place where it went on.
    again = open_log(tmp_path, config, recovery_point=30)
    assert again.hole == 20
    again.cut_at_hole(NOW_MS)
    _is_whole(again, 20)


def test_a_log_of_which_no_file_is_left_lacks_everything(tmp_path: Path) -> None:
    log = fill(tmp_path)
    for segment in log.segments:
        remove(segment)
    again = open_log(tmp_path, SMALL, recovery_point=30)
    assert (again.hole, again.log_end_offset) == (0, 0)
    again.cut_at_hole(NOW_MS)
    _is_whole(again, 0)


def test_a_hole_that_reaches_into_what_was_deleted_begins_with_the_log(tmp_path: Path) -> None:
    log = fill(tmp_path)
    second, third = log.segments[1:3]
    remove(second)
    start = third.base_offset - 1
    again = open_log(tmp_path, SMALL, recovery_point=30, log_start_offset=start)
    assert (again.log_start_offset, again.hole) == (start, start)
    again.cut_at_hole(NOW_MS)
    assert (again.log_start_offset, again.log_end_offset) == (start, start)
    assert append(again, b"next") == start


def test_what_was_deleted_or_never_synced_is_no_hole(tmp_path: Path) -> None:
    log = fill(tmp_path)
    second, third = log.segments[1:3]
    remove(second)
    assert open_log(tmp_path, SMALL, recovery_point=30, log_start_offset=third.base_offset).hole is None
    assert open_log(tmp_path, SMALL, recovery_point=3).hole is None


def test_what_compaction_left_out_is_no_hole(tmp_path: Path) -> None:
    log = fill(tmp_path, config=COMPACTED)
    second, third = log.segments[1:3]
    remove(second)
    assert open_log(tmp_path, COMPACTED, recovery_point=30).hole is None
    # Nor is it when the topic is not compacted any more.
    assert open_log(tmp_path, SMALL, recovery_point=30, cleaned_offset=third.base_offset).hole is None


def test_a_truncation_below_a_hole_takes_it_away(tmp_path: Path) -> None:
    log = fill(tmp_path)
    second = log.segments[1]
    remove(second)
    again = open_log(tmp_path, SMALL, recovery_point=30)
    again.truncate_to(second.base_offset + 1, NOW_MS)
    assert again.hole == second.base_offset
    again.truncate_to(2, NOW_MS)
    assert again.hole is None
    assert append(again, b"next") == 2


def _is_whole(log: Log, end: int) -> None:
    """From its start to `end`, also with what is appended there, and after another start."""
    assert append(log, b"next") == end
    expected = [*((n, b"%04d" % n) for n in range(end)), (end, b"next")]
    assert read_all(log) == expected
    log.flush()
    again = open_log(log.dir, log.config, recovery_point=log.recovery_point)
    assert (again.hole, again.damage) == (None, ())
    assert read_all(again) == expected
