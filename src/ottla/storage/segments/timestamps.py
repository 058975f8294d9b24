"""From a time to an offset, for ListOffsets: time index, then batch headers, then the records of one batch.

The only reading of records in a log: a batch may be compressed, and the answer is a record, not a batch (as in Kafka).
That takes its time, so the search is a generator: it yields None where it may be interrupted, and what it waits for.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ottla.records.batch import NO_TIMESTAMP, BatchHeader
from ottla.records.time_search import PLAIN_BYTES_MAX, first_record_since, needs_records, open_batch
from ottla.storage.disk import OpenFile
from ottla.storage.segments.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log

T = TypeVar("T")
Search = Generator[Awaitable[Any] | None, Any, T]

# A plain batch up to this size is read where it is.
_INLINE_BYTES_MAX = 16 * 1024


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class Elsewhere(Protocol):
    """Where batches are read and opened: a thread, and memory of which there is only so much."""

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What `work` gives, or will give."""

    def reserve(self, size: int) -> Any: ...

    def release(self, size: int) -> None: ...


class Here:
    """For tests and tools, which have nobody to keep waiting."""

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    def reserve(self, size: int) -> None:
        pass

    def release(self, size: int) -> None:
        pass


HERE = Here()


def at_once(search: Search[T]) -> T:
    """The end of a search whose batches are opened `HERE`."""
    value = None
    try:
        while True:
            value = search.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


def find_by_timestamp(log: Log, timestamp: int, elsewhere: Elsewhere) -> Search[TimestampOffset | None]:
    """The first record at or above the log start whose timestamp is `timestamp` or later."""
    log.check_usable()
    for segment in log.segments[log.segment_number(log.log_start_offset) :]:
        if segment.size and segment.largest_timestamp() >= timestamp:
            found = yield from _first_since(segment, timestamp, log.log_start_offset, elsewhere)
            if found is not None:
                return found
        yield None
    return None


def _first_since(
    segment: Segment, timestamp: int, start_offset: int, elsewhere: Elsewhere
) -> Search[TimestampOffset | None]:
    offset = segment.last_offset_up_to(timestamp - 1)
    # The segment may be deleted or compacted meanwhile: its positions are those of this file.
    file = segment.file()
    for position, header in segment.headers_from(max(offset, start_offset)):
        if header.max_timestamp >= timestamp:
            found = yield from _first_in_batch(file, position, header, timestamp, start_offset, elsewhere)
            if found is not None:
                return TimestampOffset(*found, header.leader_epoch)
        yield None
    return None


def _first_in_batch(
    file: OpenFile, position: int, header: BatchHeader, timestamp: int, start_offset: int, elsewhere: Elsewhere
) -> Search[tuple[int, int] | None]:
    if not needs_records(header):
        return (yield from first_record_since(None, header, timestamp, start_offset))
    if header.size <= _INLINE_BYTES_MAX and not header.codec:
        records = _read_and_open(file, position, header)
        return (yield from first_record_since(records, header, timestamp, start_offset))
    reserved = header.size + (PLAIN_BYTES_MAX if header.codec else header.size)
    yield elsewhere.reserve(reserved)
    try:
        records = yield elsewhere.run(_read_and_open, file, position, header)
        return (yield from first_record_since(records, header, timestamp, start_offset))
    finally:
        elsewhere.release(reserved)


def _read_and_open(file: OpenFile, position: int, header: BatchHeader) -> bytes | bytearray | None:
    return open_batch(os.pread(file.fd, header.size, position), header)


def find_max_timestamp(log: Log, elsewhere: Elsewhere) -> Search[TimestampOffset | None]:
    """The first record with the largest timestamp; None when the log is empty."""
    log.check_usable()
    live = [segment for segment in log.segments[log.segment_number(log.log_start_offset) :] if segment.size]
    if not live:
        return None
    latest = max(live, key=lambda segment: segment.largest_timestamp())
    timestamp = latest.largest_timestamp()
    if timestamp == NO_TIMESTAMP:
        return None
    return (yield from _first_since(latest, timestamp, log.log_start_offset, elsewhere))
