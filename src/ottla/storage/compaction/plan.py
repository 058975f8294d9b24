"""Which log to compact next, and what exactly: Kafka's rules (LogCleanerManager), decided on the broker's loop.

    |---- clean ----|---- dirty, cleanable ----|---- not to be touched ----|
                    ^ first dirty offset       ^ upper offset

Not to be touched: the active segment, everything from the last stable offset on, and segments with a record younger
than min.compaction.lag.ms. A log is due when the cleanable part is more than min.cleanable.dirty.ratio of both
together, or when its oldest dirty record has waited max.compaction.lag.ms. The dirtiest goes first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ottla.storage.compaction.job import CompactionJob, SourceSegment
from ottla.storage.log import Log
from ottla.storage.producers.log_transactions import aborted_in
from ottla.storage.segments.indexes import INT32_MAX
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.txn_index import AbortedTxn

logger = logging.getLogger(__name__)

# Renames happen on the loop, four or eight for each segment: a few milliseconds for this many.
_GROUP_SEGMENTS_MAX = 64


@dataclass(frozen=True, slots=True)
class CleanableLog:
    log: Log
    first_dirty_offset: int
    upper_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def due(self) -> bool:
        return (self.overdue and self.dirty_bytes > 0) or self.ratio > self.log.config.min_cleanable_dirty_ratio


def dirtiest(
    logs: Iterable[Log], now_ms: int, failed: Callable[[Log, Exception], None] | None = None
) -> CleanableLog | None:
    """Of the compacted logs that are due, the one with the largest dirty share. One that cannot be looked at is told
    to `failed`, and keeps nobody else waiting."""
    surveyed: list[CleanableLog] = []
    for log in logs:
        if not log.config.cleanup_compact or log.failed is not None:
            continue
        try:
            surveyed.append(survey(log, now_ms))
        except Exception as error:
            if failed is None:
                raise
            failed(log, error)
    return max((survey for survey in surveyed if survey.due), key=lambda survey: survey.ratio, default=None)


def survey(log: Log, now_ms: int) -> CleanableLog:
    first_dirty = first_dirty_offset(log)
    dirty = log.segments[log.segment_number(first_dirty) : -1]
    upper = _upper_offset(log, dirty, now_ms)
    return CleanableLog(
        log,
        first_dirty,
        upper,
        sum(segment.size for segment in log.segments if segment.base_offset < first_dirty),
        sum(segment.size for segment in dirty if segment.base_offset < upper),
        _is_overdue(log, dirty, now_ms),
    )


def first_dirty_offset(log: Log) -> int:
    """Where the last round ended, unless the log no longer reaches from before to behind it."""
    if log.log_start_offset <= log.cleaned_offset <= log.log_end_offset:
        return log.cleaned_offset
    if log.cleaned_offset > log.log_end_offset:
        logger.warning(
            "%s was clean up to %d, but ends at %d; it is cleaned from its start again",
            log.name,
            log.cleaned_offset,
            log.log_end_offset,
        )
    log.cleaned_offset = log.log_start_offset
    return log.log_start_offset


def _upper_offset(log: Log, dirty: list[Segment], now_ms: int) -> int:
    """Base offset of the first segment that may not be cleaned."""
    stable = log.last_stable_offset
    lag_ms = log.config.min_compaction_lag_ms
    for segment, following in zip(dirty, [*dirty[1:], log.segments[-1]], strict=False):
        if following.base_offset > stable:
            return segment.base_offset
        if lag_ms > 0 and segment.largest_timestamp() > now_ms - lag_ms:
            return segment.base_offset
    return log.segments[-1].base_offset


def _is_overdue(log: Log, dirty: list[Segment], now_ms: int) -> bool:
    latest = now_ms - log.config.max_compaction_lag_ms
    if latest <= 0:
        return False
    return any(0 < segment.first_batch_timestamp() < latest for segment in dirty)


def make_job(
    cleanable: CleanableLog, now_ms: int, wall_ms: int, *, map_bytes_max: int, bytes_per_second: float | None = None
) -> CompactionJob:
    """`now_ms` is a time that is believed; the horizon of new tombstones counts from the wall clock if that is ahead:
    whichever of them is wrong, none goes early."""
    log = cleanable.log
    return CompactionJob(
        directory=str(log.dir),
        groups=[[_source(segment) for segment in group] for group in group_segments(log, cleanable.upper_offset)],
        first_dirty_offset=cleanable.first_dirty_offset,
        upper_offset=cleanable.upper_offset,
        now_ms=now_ms,
        new_horizon_ms=max(now_ms, wall_ms) + log.config.delete_retention_ms,
        index_interval_bytes=log.config.index_interval_bytes,
        map_bytes_max=map_bytes_max,
        bytes_per_second=bytes_per_second,
        aborted=[(entry[0], entry[1], entry[2], entry[3]) for entry in _aborted(log)],
        producers=_last_records(log, cleanable.upper_offset),
    )


def _last_records(log: Log, upper_offset: int) -> list[tuple[int, int, int]]:
    """Of the producers whose last batch is in the part that is cleaned, or of whom only a marker may be left."""
    found = []
    for producer_id, entry in log.producers.entries.items():
        last_data_offset = entry.batches[-1][1] if entry.batches else -1
        if last_data_offset < upper_offset:
            found.append((producer_id, last_data_offset, entry.epoch))
    return found


def _source(segment: Segment) -> SourceSegment:
    return SourceSegment(segment.base_offset, segment.size, segment.modified_ms)


def _aborted(log: Log) -> list[AbortedTxn]:
    """Of all segments: a transaction that began in a cleanable one may have ended in any later one."""
    found: list[AbortedTxn] = []
    for segment in log.segments:
        found += aborted_in(log, segment)
    return found


def group_segments(log: Log, upper_offset: int) -> list[list[Segment]]:
    """Neighbours that together stay within the limits of one segment: compaction must not leave ever smaller ones."""
    groups: list[list[Segment]] = []
    size = index_bytes = time_index_bytes = 0
    below = [segment for segment in log.segments[:-1] if segment.base_offset < upper_offset]
    for segment, end in zip(below, [*(following.base_offset for following in below[1:]), upper_offset], strict=False):
        offsets_bytes, times_bytes = segment.index_bytes()
        size += segment.size
        index_bytes += offsets_bytes
        time_index_bytes += times_bytes
        if (
            groups
            and len(groups[-1]) < _GROUP_SEGMENTS_MAX
            and size <= log.config.segment_bytes
            and max(index_bytes, time_index_bytes) <= log.config.segment_index_bytes
            and end - 1 - groups[-1][0].base_offset <= INT32_MAX
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, index_bytes, time_index_bytes = segment.size, offsets_bytes, times_bytes
    return groups
