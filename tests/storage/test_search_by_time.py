"""A search by time goes a little at a time: whatever becomes of the segment meanwhile, it finds its records."""

from __future__ import annotations

from pathlib import Path

from ottla.storage.segments.timestamps import HERE, at_once, find_by_timestamp
from tests.storage.batches import NOW_MS, append, open_log


def test_a_segment_that_is_released_in_the_middle_of_a_search_is_searched_to_its_end(tmp_path: Path) -> None:
    log, other = open_log(tmp_path / "searched"), open_log(tmp_path / "other")
    for _ in range(300):
        append(log, b"early")
    late = append(log, b"late", timestamp=NOW_MS + 5)
    for _ in range(100):
        append(other, b"of another topic", timestamp=NOW_MS + 5)
    search = find_by_timestamp(log, NOW_MS + 5, HERE)
    next(search)
    descriptor = log.segments[0].file().fd
    other.segments[0].release()
    log.segments[0].release()
    # What retention, compaction and the deletion of a topic do: the next file that is opened gets the descriptor.
    taken = [other.segments[0].file()]
    while taken[-1].fd < descriptor:
        taken.append(log.disk.open(other.segments[0].path(".log"), 0))
    found = at_once(search)
    assert found is not None
    assert found.offset == late
