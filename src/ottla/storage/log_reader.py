"""The reading half of a log: from an offset to a range of one segment file.

The positions of the latest batches are kept in two small dicts, so that a consumer at the tail costs one look-up and no
read; anybody else goes through the sparse index and a few kilobytes of batch headers.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from operator import attrgetter
from pathlib import Path

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.records.batch import LOG_OVERHEAD
from ottla.storage.results import LogSlice
from ottla.storage.segments.segment import Segment

_BASE_OFFSET = attrgetter("base_offset")


class LogReader:
    __slots__ = (
        "_active",
        "_older",
        "_recent",
        "_refusal",
        "dir",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "recovery_point",
        "segments",
        "topic",
    )

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        segments: list[Segment],
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self.dir = directory
        self.topic, self.partition = topic_partition
        # Oldest first; the last one is the active segment.
        self.segments = segments
        self._active = segments[-1]
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        # Readers see nothing at or above it; the broker moves it.
        self.high_watermark = log_start_offset
        # Everything below is on disk for sure.
        self.recovery_point = recovery_point
        # Base offset -> position in the active segment, in two generations.
        self._recent: dict[int, int] = {}
        self._older: dict[int, int] = {}
        # Why nothing may be read or written any more, if so.
        self._refusal: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def failed(self) -> str | None:
        """Why the log refuses everything; None while it works."""
        return self._refusal

    def read(self, offset: int, max_bytes: int, *, upper_offset: int, min_one: bool) -> LogSlice:
        """A file range from the batch that holds `offset` on, of at most `max_bytes`; batches from `upper_offset` on
        are left out. A batch may be cut at the end, but never the first one: when it does not fit it is sent all the
        same if `min_one`, else nothing is (KIP-74)."""
        position = self._recent.get(offset)
        if position is None:
            position = self._older.get(offset)
        try:
            if position is None:
                return self._read_anywhere(offset, max_bytes, upper_offset, min_one)
            segment = self._active
            available = size = self._end_position(segment, upper_offset) - position
            file = segment.file()
            if size > max_bytes:
                size = _limited(size, max_bytes, _first_size(file.fd, position), min_one)
        except OSError as error:
            raise self._disk_error(error) from error
        if size > 0:
            return LogSlice(file, file.fd, position, size, offset, available)
        return LogSlice(None, -1, 0, 0, offset, available)

    def _read_anywhere(self, offset: int, max_bytes: int, upper_offset: int, min_one: bool) -> LogSlice:
        self.check_usable()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} has offsets {self.log_start_offset} to {self.log_end_offset}, not {offset}",
            )
        if offset < min(upper_offset, self.log_end_offset):
            for segment in self.segments[self.segment_number(offset) :]:
                # After compaction a segment may hold nothing at or behind the offset: the next one has it.
                found = segment.find(offset)
                if found is None:
                    continue
                position, first_offset, _, first_size = found
                available = size = self._end_position(segment, upper_offset) - position
                if size <= 0:
                    break
                goes_on = self._goes_on_after(segment, upper_offset)
                if size > max_bytes:
                    size = _limited(size, max_bytes, first_size, min_one)
                    if not size:
                        return LogSlice(None, -1, 0, 0, offset, available, goes_on)
                file = segment.file()
                return LogSlice(file, file.fd, position, size, first_offset, available, goes_on)
        return LogSlice(None, -1, 0, 0, offset)

    def _goes_on_after(self, segment: Segment, upper_offset: int) -> bool:
        """Whether readers find more below `upper_offset` in the segments that follow."""
        if segment is self._active:
            return False
        following = self.segments[self.segments.index(segment) + 1]
        return following.base_offset < min(upper_offset, self.log_end_offset)

    def _end_position(self, segment: Segment, upper_offset: int) -> int:
        """Where the batches below `upper_offset` end inside this segment."""
        if upper_offset >= self.log_end_offset:
            return segment.size
        if segment is self._active:
            position = self._recent.get(upper_offset)
            if position is None:
                position = self._older.get(upper_offset)
            if position is not None:
                return position
        else:
            following = self.segments[self.segments.index(segment) + 1]
            if following.base_offset <= upper_offset:
                return segment.size
        return segment.position_of(upper_offset)

    def upper_offset_of(self, piece: LogSlice) -> int:
        """An offset above everything in this slice: aborted transactions beyond it need not be told to its reader."""
        number = self.segment_number(piece.first_offset)
        following = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else self.log_end_offset
        try:
            entry = self.segments[number].next_index_offset(piece.position + piece.size)
        except OSError as error:
            raise self._disk_error(error) from error
        return min(entry + 1, following) if entry is not None else following

    def segment_number(self, offset: int) -> int:
        """Of the last segment that begins at or below `offset`; the first one if none does."""
        return max(bisect_right(self.segments, offset, key=_BASE_OFFSET) - 1, 0)

    def check_usable(self) -> None:
        if self._refusal is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, self._refusal)

    def _disk_error(self, error: OSError) -> ApiError:
        """What to raise when the disk fails under a read."""
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {error.strerror}")

    def _forget_positions(self) -> None:
        self._recent = {}
        self._older = {}


def _limited(size: int, max_bytes: int, first_size: int, min_one: bool) -> int:
    """How much of `size` bytes, which are more than `max_bytes`, is sent if the first batch has `first_size`."""
    if first_size <= max_bytes:
        return max_bytes
    return min(size, first_size) if min_one else 0


def _first_size(fd: int, position: int) -> int:
    raw = os.pread(fd, LOG_OVERHEAD, position)
    return int.from_bytes(raw[8:12], "big") + LOG_OVERHEAD
