"""From a time to an offset, for ListOffsets: time index, then batch headers, then the records of one batch.

The only reading of records in a log: a batch may be compressed, and the answer is a record, not a batch (as in Kafka).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ottla.records import batch as v2
from ottla.records.time_search import first_record_since
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """The first record at or above the log start whose timestamp is `timestamp` or later."""
    log.check_usable()
    for segment in log.segments[log.segment_number(log.log_start_offset) :]:
        if segment.size and segment.largest_timestamp() >= timestamp:
            found = _first_since(segment, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return None


def _first_since(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    offset = segment.last_offset_up_to(timestamp - 1)
    for position, header in segment.headers_from(max(offset, start_offset)):
        if header.max_timestamp < timestamp:
            continue
        batch = os.pread(segment.file().fd, header.size, position)
        found = first_record_since(batch, header, timestamp, start_offset)
        if found is not None:
            return TimestampOffset(*found, header.leader_epoch)
    return None


def find_max_timestamp(log: Log) -> TimestampOffset | None:
    """The first record with the largest timestamp; None when the log is empty."""
    log.check_usable()
    live = [one for one in log.segments[log.segment_number(log.log_start_offset) :] if one.size]
    if not live:
        return None
    latest = max(live, key=lambda one: one.largest_timestamp())
    timestamp = latest.largest_timestamp()
    if timestamp == v2.NO_TIMESTAMP:
        return None
    return _first_since(latest, timestamp, log.log_start_offset)
