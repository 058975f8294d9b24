"""What may leave a log: old segments, records before an offset that a client named, a tail that a leader disowns.

Nothing at or above the high watermark is ever deleted. Files get the suffix `.deleted` at once and are removed after
file.delete.delay.ms, when no fetch can be reading them any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.common.errors import ApiError, ErrorCode
from ottla.storage.producers.log_transactions import load_producers
from ottla.storage.segments.segment import DELETED_SUFFIX, Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log

logger = logging.getLogger(__name__)

HIGH_WATERMARK = -1


def delete_records(log: Log, offset: int) -> int:
    """DeleteRecords: readers no longer see what is below `offset`; the segments go with the next clean-up."""
    log.check_usable()
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{log.name} can be deleted up to {log.high_watermark}, not {offset}"
        )
    if offset > log.log_start_offset:
        log.set_log_start(offset)
    return log.log_start_offset


def delete_old_segments(log: Log, now_ms: int) -> int:
    """How many segments went."""
    if log.failed is not None:
        return 0
    count = _delete_leading(log, now_ms, lambda segment, following: following <= log.log_start_offset, "log start")
    if log.config.cleanup_delete:
        count += _delete_by_size(log, now_ms) + _delete_by_age(log, now_ms)
    return count


def _delete_by_size(log: Log, now_ms: int) -> int:
    limit = log.config.retention_bytes
    if limit < 0 or log.size_bytes < limit:
        return 0
    excess = log.size_bytes - limit

    def is_excess(segment: Segment, following: int) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _delete_leading(log, now_ms, is_excess, "retention.bytes")


def _delete_by_age(log: Log, now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    return _delete_leading(log, now_ms, lambda segment, _: now_ms - _age_stamp(segment, now_ms) > limit, "retention.ms")


def _age_stamp(segment: Segment, now_ms: int) -> int:
    """The time a segment counts as being from: its largest timestamp, also one of the future, which the topic has
    allowed (message.timestamp.after.max.ms). Without any, the time of the last append."""
    timestamp = segment.largest_timestamp()
    if timestamp > now_ms:
        logger.debug("%s in %s has records of the future: it is kept until then", segment, segment.directory)
    return timestamp if timestamp >= 0 else segment.modified_ms


def _delete_leading(log: Log, now_ms: int, may_go: Callable[[Segment, int], bool], reason: str) -> int:
    """Delete from the oldest on while `may_go(segment, offset where the next begins)`."""
    segments = log.segments
    count = 0
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        following = log.log_end_offset if is_last else segments[number + 1].base_offset
        if following > log.high_watermark or (is_last and not segment.size) or not may_go(segment, following):
            break
        count += 1
    if count == 0:
        return 0
    if count == len(segments):
        log.roll(now_ms)
    doomed = segments[:count]
    logger.info("%s: deleting %d segments up to offset %d: %s", log.name, count, segments[count].base_offset, reason)
    log.set_log_start(max(log.log_start_offset, segments[count].base_offset))
    del segments[:count]
    delete_segments(log, doomed)
    log.snapshots.delete_below(segments[0].base_offset)
    return count


def delete_segments(log: Log, doomed: list[Segment]) -> None:
    """Take the files of segments that are no longer in the log's list out of the way."""
    kept = {segment.base_offset for segment in log.segments}
    for segment in doomed:
        segment.rename_to(DELETED_SUFFIX)
        log.owner.delete_later(segment.paths(), log.config.file_delete_delay_ms)
        segment.release()
        # A cleaned segment that takes the place of this one keeps the snapshot.
        if segment.base_offset not in kept:
            log.snapshots.delete(segment.base_offset)


def truncate_to(log: Log, offset: int, now_ms: int) -> None:
    log.check_usable()
    if offset >= log.log_end_offset:
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        return
    if offset < log.segments[0].base_offset:
        restart_at(log, offset, now_ms)
        return
    number = log.segment_number(offset)
    doomed = log.segments[number + 1 :]
    last = log.segments[number]
    last.truncate_to(offset)
    # Compaction may have left a gap: the log ends where it was told to.
    log.cut_back(log.segments[: number + 1], offset)
    delete_segments(log, doomed)
    log.snapshots.delete_above(offset)
    load_producers(log.producers, log.snapshots, log.segments, offset, now_ms)


def restart_at(log: Log, offset: int, now_ms: int) -> None:
    """Drop everything and go on at `offset`: a follower that fell out of the leader's range."""
    doomed = list(log.segments)
    try:
        # The files of the old segments are out of the way before one of the same name is made.
        for segment in doomed:
            segment.rename_to(DELETED_SUFFIX)
        first = log.new_segment(offset, now_ms)
    except OSError:
        for segment in doomed:
            segment.rename_to("")
        raise
    log.cut_back([first], offset)
    delete_segments(log, doomed)
    log.log_start_offset = log.recovery_point = log.high_watermark = offset
    for snapshot in list(log.snapshots.offsets):
        log.snapshots.delete(snapshot)
    log.producers.restore((), offset, now_ms)
