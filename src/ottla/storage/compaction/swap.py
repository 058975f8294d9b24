"""Put cleaned segments in the place of the ones they were made from, so that a crash at any step loses nothing.

    1. the new files are on disk (the worker has synced them)    a start throws `.cleaned` away
    2. `.cleaned` becomes `.swap`, the log first                 a start throws both away as long as one is `.cleaned`
    3. the old segments become `.deleted`                        a start completes the swap: it removes what is left
    4. `.swap` loses its suffix                                  of the old segments and finishes the renaming
    5. the folder is synced, before the next group               (storage/loading/folder.py has that side)

Renames are all that happens on the broker's loop. Readers of old segments keep their open files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.storage.compaction.job import CompactionJob, GroupResult, SourceSegment
from ottla.storage.log import Log
from ottla.storage.retention import delete_segments
from ottla.storage.segments.segment import CLEANED_SUFFIX, SWAP_SUFFIX, Segment


class SegmentsChanged(Exception):
    """Between job and result the log was truncated, deleted, or lost segments to retention: the result is void."""


def swap_in(log: Log, job: CompactionJob, result: GroupResult) -> None:
    """Raises SegmentsChanged, having removed the cleaned files; OSError when the disk fails, and the log with it."""
    new = Segment(
        log.dir,
        result.base_offsets[0],
        index_interval=log.config.index_interval_bytes,
        suffix=CLEANED_SUFFIX,
        disk=log.disk,
    )
    group = next(planned for planned in job.groups if planned[0].base_offset == result.base_offsets[0])
    # The map may have ended inside the group: then the rest of it was not cleaned.
    group = group[: len(result.base_offsets)]
    if not log.config.cleanup_compact or str(log.dir) != job.directory or not is_unchanged(log, [group]):
        for path in new.paths():
            path.unlink(missing_ok=True)
        raise SegmentsChanged(f"{log.name} changed while it was compacted")
    if not result.differs:
        return
    number = log.segment_number(group[0].base_offset)
    old = log.segments[number : number + len(group)]
    new.attach(result.size, old[-1].modified_ms)
    try:
        new.rename_to(SWAP_SUFFIX)
        log.segments[number : number + len(old)] = [new]
        delete_segments(log, old)
        new.rename_to("")
    except OSError as error:
        log.owner.disk_failed(log, error)
        raise


def is_unchanged(log: Log, groups: Iterable[Sequence[SourceSegment]]) -> bool:
    """Whether these segments stand in the log as they did when the job was made."""
    if log.failed is not None:
        return False
    for group in groups:
        number = log.segment_number(group[0].base_offset)
        # The last one is active: what is appended to it now would be lost.
        found = log.segments[number : number + len(group)] if number + len(group) < len(log.segments) else []
        sizes = [(segment.base_offset, segment.size) for segment in found]
        if sizes != [(segment.base_offset, segment.size) for segment in group]:
            return False
    return True
