"""The log of one partition: a row of segments, appended at the end, read anywhere. It never decodes records.

Used from one thread only. `append` and `read` are the hot path and cost a few microseconds each, so they hold to three
rules. (1) Everything that can go wrong or needs thought is folded into three limits of the active segment
(`_size_limit`, `_offset_limit`, `_roll_at`): a segment that is not open yet, is full, has a full index, or sits in a
failed directory has a limit that no append passes, and the slow path sorts out why. (2) Positions of the latest batches
are kept in two small dicts, so that a consumer at the tail costs one look-up and no read. (3) State changes only after
the bytes are in the file; a failed write is cut off again and leaves everything as it was.
"""

from __future__ import annotations

import errno
import os
import random
import struct
from bisect import bisect_right
from operator import attrgetter
from pathlib import Path

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.records import batch as v2
from ottla.storage.disk import DISK, Disk
from ottla.storage.log_config import LogConfig
from ottla.storage.results import AppendResult, LogSlice, Origin
from ottla.storage.segment import Segment

_HEADER = v2.HEADER
# Base offset, length, leader epoch: the bytes of a batch that the broker writes, and what stands between them.
_STAMP = struct.Struct(">qii")
# Batches whose position is remembered, in two generations of this size.
_RECENT_BATCHES = 64


class Log:
    __slots__ = (
        "_active",
        "_fd",
        "_index_interval",
        "_offset_limit",
        "_older",
        "_pwrite",
        "_pwritev",
        "_recent",
        "_refusal",
        "_roll_at",
        "_size_limit",
        "config",
        "dir",
        "disk",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "recovery_point",
        "segments",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        segments: list[Segment],
        *,
        log_end_offset: int,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        disk: Disk = DISK,
    ) -> None:
        self.dir = directory
        self.topic, self.partition = topic_partition
        self.topic_id = topic_id
        self.disk = disk
        self._pwrite = disk.pwrite
        self._pwritev = disk.pwritev
        # Oldest first; the last one is the active segment.
        self.segments = segments
        self._active = segments[-1]
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_start_offset
        self.recovery_point = recovery_point
        self._recent: dict[int, int] = {}
        self._older: dict[int, int] = {}
        # Why nothing may be read or written any more, if so.
        self._refusal: str | None = None
        self._fd = -1
        self.set_config(config)

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    def set_config(self, config: LogConfig) -> None:
        self.config = config
        self._index_interval = config.index_interval_bytes
        self._forget_limits()

    # -- append --

    def append(
        self,
        data: memoryview | bytearray | bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
    ) -> AppendResult:
        """Write validated batches at the end. See the module for why it reads as one long function."""
        header = _HEADER.unpack_from(data)
        length = header[1]
        size = len(data)
        if length + 12 != size or origin is Origin.REPLICATION:
            return self._append_many(data, leader_epoch, now_ms, origin)
        last_offset_delta, max_timestamp = header[6], header[8]
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        segment = self._active
        position = segment.size
        if position + size > self._size_limit or last_offset > self._offset_limit or max_timestamp > self._roll_at:
            segment = self._prepare(size, last_offset, max_timestamp, now_ms)
            position = segment.size

        try:
            if type(data) is bytearray:
                _STAMP.pack_into(data, 0, base_offset, length, leader_epoch)
                written = self._pwrite(self._fd, data, position)
            else:
                stamp = _STAMP.pack(base_offset, length, leader_epoch)
                written = self._pwritev(self._fd, (stamp, memoryview(data)[16:]), position)
        except OSError as error:
            raise self._undo_append(position, error) from error
        if written != size:
            self._finish_short_write(data, base_offset, length, leader_epoch, position, written)

        since_index = segment.bytes_since_index
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.max_timestamp_offset = last_offset
        if since_index > self._index_interval:
            self._add_index_entry(segment, last_offset, position)
            since_index = 0
        segment.bytes_since_index = since_index + size
        segment.size = position + size
        self.log_end_offset = last_offset + 1
        recent = self._recent
        recent[base_offset] = position
        if len(recent) >= _RECENT_BATCHES:
            self._older = recent
            self._recent = {}
        return AppendResult(base_offset, last_offset, max_timestamp)

    def _append_many(
        self, data: memoryview | bytearray | bytes, leader_epoch: int, now_ms: int, origin: Origin
    ) -> AppendResult:
        """Several batches, or batches that keep their offsets (replication): all are written, or none."""
        buffer = bytearray(data)
        batches: list[tuple[int, v2.BatchHeader]] = []
        next_offset = self.log_end_offset
        at = 0
        while at < len(buffer):
            header = v2.read_header(buffer, at)
            if origin is not Origin.REPLICATION:
                header = header._replace(base_offset=next_offset, leader_epoch=leader_epoch)
                v2.stamp(buffer, at, next_offset, leader_epoch)
            elif header.base_offset < next_offset:
                raise ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self.topic}-{self.partition} ends at {next_offset}, the batch begins at {header.base_offset}",
                )
            batches.append((at, header))
            next_offset = header.last_offset + 1
            at += header.size
        first, last = batches[0][1], batches[-1][1]
        max_timestamp = max(header.max_timestamp for _, header in batches)
        segment = self._prepare(len(buffer), last.last_offset, max_timestamp, now_ms, first.base_offset)
        start = segment.size
        try:
            self.disk.write_all(self._fd, buffer, start)
        except OSError as error:
            raise self._undo_append(start, error) from error
        for at, header in batches:
            position = start + at
            segment.note_batch(position, header.size, header.last_offset, header.max_timestamp, self._index_interval)
            self._recent[header.base_offset] = position
        if len(self._recent) >= _RECENT_BATCHES:
            self._older, self._recent = self._recent, {}
        self.log_end_offset = last.last_offset + 1
        return AppendResult(first.base_offset, last.last_offset, max_timestamp)

    def _add_index_entry(self, segment: Segment, last_offset: int, position: int) -> None:
        segment.offsets.append(last_offset, position)
        segment.times.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
        if segment.is_index_full(self.config.segment_index_bytes):
            self._forget_limits()

    def _finish_short_write(
        self,
        data: memoryview | bytearray | bytes,
        base_offset: int,
        length: int,
        epoch: int,
        position: int,
        written: int,
    ) -> None:
        """A disk that fills up writes short before it says so: try the rest, and take everything back if it fails."""
        whole = bytearray(data)
        _STAMP.pack_into(whole, 0, base_offset, length, epoch)
        try:
            self.disk.write_all(self._fd, memoryview(whole)[written:], position + written)
        except OSError as error:
            raise self._undo_append(position, error) from error

    def _undo_append(self, position: int, error: OSError) -> ApiError:
        """No half batch stays behind. Returns what to raise; a disk that cannot even truncate is given up."""
        self._forget_limits()
        try:
            self.disk.ftruncate(self._fd, position)
        except OSError as second:
            self.fail(f"{second.strerror} while taking back a failed write")
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error.strerror)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"append to {self.topic}-{self.partition} failed: {reason}")

    def _prepare(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, base_offset: int | None = None
    ) -> Segment:
        """Find or make the segment for an append of `size` bytes, and set the limits for the ones after it."""
        if self._refusal is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, self._refusal)
        if size > self.config.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit into a segment of {self.config.segment_bytes} bytes (segment.bytes)",
            )
        segment = self._active
        if self._must_roll(segment, size, last_offset, max_timestamp, now_ms):
            self.roll(now_ms, self.log_end_offset if base_offset is None else base_offset)
            segment = self._active
        if segment.size == 0:
            segment.first_timestamp = max_timestamp
        segment.largest_timestamp()
        self._fd = segment.file().fd
        self._size_limit = self.config.segment_bytes
        self._offset_limit = segment.max_offset
        first = segment.first_batch_timestamp()
        # Without timestamps a segment ages by the clock: never let such an append pass unexamined.
        self._roll_at = first + self._segment_ms(segment) if first >= 0 else -2
        return segment

    def _segment_ms(self, segment: Segment) -> int:
        config = self.config
        segment_ms = config.segment_ms
        if config.cleanup_compact and config.max_compaction_lag_ms > 0:
            segment_ms = min(segment_ms, config.max_compaction_lag_ms)
        return segment_ms - segment.jitter_ms

    def _must_roll(self, segment: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        if segment.size > self.config.segment_bytes - size or last_offset > segment.max_offset:
            return True
        if segment.is_index_full(self.config.segment_index_bytes):
            return True
        if segment.size == 0:
            return False
        first = segment.first_batch_timestamp()
        waited = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
        return waited > self._segment_ms(segment)

    def _forget_limits(self) -> None:
        """Send the next append through `_prepare`."""
        self._size_limit = -1
        self._offset_limit = -1
        self._roll_at = -2

    # -- segments --

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Close the active segment and start one at the log end (or at `base_offset`, if that is further)."""
        start = max(self.log_end_offset, base_offset or 0)
        old = self._active
        if old.base_offset == start:
            if old.size:
                raise ValueError(f"{self.topic}-{self.partition}: segment {start} is there and not empty")
            return old
        old.finish()
        segment = self._new_segment(start, now_ms)
        self.segments.append(segment)
        self._activate(segment)
        return segment

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = Segment(self.dir, base_offset, disk=self.disk)
        segment.create(now_ms)
        bound = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment.jitter_ms = random.randrange(bound) if bound > 0 else 0
        return segment

    def _activate(self, segment: Segment) -> None:
        self._active = segment
        self._forget_positions()
        self._forget_limits()

    def _forget_positions(self) -> None:
        self._recent = {}
        self._older = {}

    # -- read --

    def read(self, offset: int, max_bytes: int, *, upper_offset: int, min_one: bool) -> LogSlice:
        """A file range from the batch that holds `offset` on, of at most `max_bytes`; batches from `upper_offset` on
        are left out. A batch may be cut at the end, but not the first one when `min_one`."""
        position = self._recent.get(offset)
        if position is None:
            position = self._older.get(offset)
            if position is None:
                return self._read_anywhere(offset, max_bytes, upper_offset, min_one)
        segment = self._active
        if upper_offset >= self.log_end_offset:
            size = segment.size - position
        else:
            size = self._end_position(segment, upper_offset) - position
        file = segment.file()
        if size > max_bytes:
            size = _limited(file.fd, position, size, max_bytes, min_one)
        return LogSlice(file, file.fd, position, size, offset) if size > 0 else LogSlice(None, -1, 0, 0, offset)

    def _end_position(self, segment: Segment, upper_offset: int) -> int:
        """Where the batches below `upper_offset` end inside this segment."""
        position = self._recent.get(upper_offset)
        if position is None:
            position = self._older.get(upper_offset)
        if position is not None and segment is self._active:
            return position
        if upper_offset >= self.log_end_offset:
            return segment.size
        return segment.position_of(upper_offset)

    def _read_anywhere(self, offset: int, max_bytes: int, upper_offset: int, min_one: bool) -> LogSlice:
        if self._refusal is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, self._refusal)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic}-{self.partition} has offsets {self.log_start_offset} to {self.log_end_offset},"
                f" not {offset}",
            )
        if offset < min(upper_offset, self.log_end_offset):
            for segment in self.segments[self._segment_number(offset) :]:
                # After compaction a segment may hold nothing at or behind the offset: the next one has it.
                found = segment.find(offset)
                if found is None:
                    continue
                position, first_offset, _, _ = found
                size = self._end_position(segment, upper_offset) - position
                if size <= 0:
                    break
                file = segment.file()
                if size > max_bytes:
                    size = _limited(file.fd, position, size, max_bytes, min_one)
                return LogSlice(file, file.fd, position, size, first_offset)
        return LogSlice(None, -1, 0, 0, offset)

    def _segment_number(self, offset: int) -> int:
        """Of the last segment that begins at or below `offset`."""
        return max(bisect_right(self.segments, offset, key=attrgetter("base_offset")) - 1, 0)

    # -- life --

    def fail(self, reason: str) -> None:
        """The directory is gone: refuse every append and read from now on."""
        self._refusal = reason
        self._forget_limits()
        self._forget_positions()

    def close(self) -> None:
        """Bring the indexes to disk and let go of the files."""
        if self._refusal is None:
            self._active.finish()
        for segment in self.segments:
            segment.release()
        self.fail("the log is closed")


def _limited(fd: int, position: int, size: int, max_bytes: int, min_one: bool) -> int:
    """`max_bytes`, or the size of the first batch if that is more and it must be whole."""
    if not min_one:
        return max_bytes
    raw = os.pread(fd, v2.LOG_OVERHEAD, position)
    first = int.from_bytes(raw[8:12], "big") + v2.LOG_OVERHEAD
    return min(size, max(max_bytes, first))
