"""The writing half of a log: batches at its end, and the segments that they go to. It never decodes records.

Used from one thread only. `append` is the hot path and costs a few microseconds, so it holds to three rules.
(1) Everything that can go wrong or needs thought is folded into three limits of the active segment (`_size_limit`,
`_offset_limit`, `_roll_at`): a segment that is not open yet, is full, has a full index, or sits in a failed directory
has a limit that no append passes, and `_prepare` sorts out why. (2) State changes only after the bytes are in the file;
a failed write is cut off again and leaves everything as it was. (3) One batch of a producer goes straight through, and
a transaction's marker nearly so; several batches and replication take `_append_many`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.records.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
)
from ottla.storage.disk import DISK, Disk
from ottla.storage.flushing.log_flush import FlushFuture, LogFlush
from ottla.storage.incoming_batches import check_fetched, fetched_batches, laid_out
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.refusals import FULL, PASSING
from ottla.storage.log_reader import LogReader
from ottla.storage.owner import LogOwner
from ottla.storage.producers import log_transactions
from ottla.storage.producers.producer_snapshot_files import SnapshotFiles
from ottla.storage.producers.producer_state import Batch, EndMarker, ProducerState, read_marker
from ottla.storage.producers.refused_batches import RefusedBatches
from ottla.storage.results import AppendResult, Origin
from ottla.storage.segments import rolling
from ottla.storage.segments.indexes import INT32_MAX
from ottla.storage.segments.segment import Segment

_HEADER = HEADER
# Base offset, length, leader epoch: the bytes of a batch that the broker writes, and what stands between them.
_STAMP = struct.Struct(">qii")
# Batches whose position is remembered, in two generations of this size.
_RECENT_BATCHES = 64
_CONTROL = CONTROL_BIT


class LogWriter(LogReader):
    __slots__ = (
        "_fd",
        "_flush_messages",
        "_flushing",
        "_index_interval",
        "_offset_limit",
        "_pwrite",
        "_refused",
        "_roll_at",
        "_size_limit",
        "_snapshot_position",
        "cleaned_offset",
        "config",
        "damage",
        "disk",
        "hole",
        "last_flush_ms",
        "leader_epochs",
        "owner",
        "producers",
        "snapshots",
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
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
        snapshots: SnapshotFiles,
        owner: LogOwner,
        disk: Disk = DISK,
        new: bool = False,
    ) -> None:
        super().__init__(directory, topic_partition, segments, log_start_offset, log_end_offset, recovery_point)
        self.topic_id = topic_id
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.snapshots = snapshots
        self.owner = owner
        self.disk = disk
        self._pwrite = disk.pwrite
        self._flushing = LogFlush(self, new_folder=new)
        self.last_flush_ms = 0
        # Below it compaction is done; the owner remembers it in cleaner-offset-checkpoint.
        self.cleaned_offset = 0
        # What recovery found broken and left in place, in words.
        self.damage: tuple[str, ...] = ()
        # Where the first records are missing that were synced once: what is left behind it is all that this disk has of
        # them, but no replica that others can copy from.
        self.hole: int | None = None
        self._snapshot_position = self._active.size
        self._refused = RefusedBatches()
        self._fd = -1
        self.set_config(config)

    def set_config(self, config: LogConfig) -> None:
        self.config = config
        self._index_interval = self._active.index_interval = config.index_interval_bytes
        self._flush_messages = config.flush_messages
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
        """Write validated batches at the end; offset and epoch are stamped into `data` if it can be written to."""
        header = _HEADER.unpack_from(data)
        if header[1] + 12 != len(data) or origin is Origin.REPLICATION:
            return self._append_many(data, leader_epoch, now_ms, origin)
        if header[5] & _CONTROL:
            marker = read_marker(data)
            if marker is None or header[9] < 0:
                return self._append_many(data, leader_epoch, now_ms, origin)
            self.producers.check_marker(header, marker, origin)
            self._make_room(len(data), header, now_ms)
            self._load_aborted()
            base_offset = self._write_batch(data, header, leader_epoch, now_ms, marker)
        else:
            base_offset = self.append_next(data, header, leader_epoch, now_ms)
        if base_offset < 0:
            self._make_room(len(data), header, now_ms)
            if header[9] >= 0:
                repeated = self._check_producer(header, origin, now_ms)
                if repeated is not None:
                    return self._already_there(repeated)
            base_offset = self._write_batch(data, header, leader_epoch, now_ms)
        return AppendResult(base_offset, self.log_end_offset - 1, header[8], False, self.flush_due)

    def _make_room(self, size: int, header: tuple[int, ...], now_ms: int) -> None:
        """`_prepare` if a limit asks for it. The limits are those of `append_next`, which has no calls to spare."""
        last_offset, max_timestamp = self.log_end_offset + header[6], header[8]
        if (
            self._active.size + size > self._size_limit
            or last_offset > self._offset_limit
            or max_timestamp > self._roll_at
        ):
            try:
                self._prepare(size, last_offset, max_timestamp, now_ms)
            except ApiError as error:
                if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                    self._refused.note(header, self.producers, error.code, now_ms)
                raise

    def append_next(
        self, data: memoryview | bytearray | bytes, header: tuple[int, ...], leader_epoch: int, now_ms: int
    ) -> int:
        """Write one plain batch about which there is nothing to decide: it fits the segment, and is its producer's
        next. Gives its offset, or -1 if that is not so: then nothing is done, and `append` is to be called."""
        _, _, _, _, _, _, offset_delta, _, max_timestamp, producer_id, producer_epoch, sequence, _ = header
        if (
            self._active.size + len(data) > self._size_limit
            or self.log_end_offset + offset_delta > self._offset_limit
            or max_timestamp > self._roll_at
        ):
            return -1
        if producer_id >= 0:
            entry = self.producers.entries.get(producer_id)
            if (
                entry is None
                or sequence != entry.next_sequence
                or producer_epoch != entry.epoch
                or entry.txn_first_offset >= 0
            ):
                return -1
        return self._write_batch(data, header, leader_epoch, now_ms)

    def _write_batch(
        self,
        data: memoryview | bytearray | bytes,
        header: tuple[int, ...],
        leader_epoch: int,
        now_ms: int,
        marker: EndMarker | None = None,
    ) -> int:
        """Reads as one long function because calls are what it can save."""
        _, length, _, _, _, _, offset_delta, _, max_timestamp, producer_id, _, _, _ = header
        base_offset = self.log_end_offset
        last_offset = base_offset + offset_delta
        segment = self._active
        position = segment.size
        size = len(data)
        try:
            _STAMP.pack_into(data, 0, base_offset, length, leader_epoch)
        except TypeError:  # read-only
            data = bytearray(data)
            _STAMP.pack_into(data, 0, base_offset, length, leader_epoch)
        try:
            written = self._pwrite(self._fd, data, position)
            if written != size:  # a disk that fills up writes short before it says so
                self.disk.write_all(self._fd, memoryview(data)[written:], position + written)
        except OSError as error:
            self._refused.note(header, self.producers, ErrorCode.KAFKA_STORAGE_ERROR, now_ms)
            raise self._undo_append(position, error) from error

        if marker is not None:
            log_transactions.record_batch(self, segment, (base_offset, *header[1:]), marker, now_ms)
        elif producer_id >= 0:
            self.producers.record(header, base_offset, now_ms)
        since_index = segment.bytes_since_index
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.max_timestamp_offset = last_offset
        if since_index > self._index_interval:
            self._add_index_entry(segment, last_offset, position)
            since_index = 0
        segment.bytes_since_index = since_index + size
        segment.size = position + size
        segment.modified_ms = now_ms
        self.log_end_offset = last_offset + 1
        recent = self._recent
        recent[base_offset] = position
        if len(recent) >= _RECENT_BATCHES:
            self._older = recent
            self._recent = {}
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        return base_offset

    def append_fetched(self, data: memoryview, now_ms: int) -> int:
        """Whole batches of a leader from the start of `data`, with the offsets and epochs that they have; gives their
        size. That is not all of them if there are very many, or if the segment ends; 0 if only a part of one is there.
        Raises ApiError: CORRUPT_MESSAGE if a batch has suffered on the way."""
        size = len(data)
        if size < HEADER_SIZE:
            return 0
        header = _HEADER.unpack_from(data)
        first_size = header[1] + LOG_OVERHEAD
        if first_size > size:
            return 0
        if first_size == size and header[0] == self.log_end_offset and not header[5] & _CONTROL:
            # One batch that follows the last one: what a stream of small writes brings.
            check_fetched(data, 0, header, self.log_end_offset)
            self._make_room(size, header, now_ms)
            self._write_batch(data, header, header[2], now_ms)
            return size
        batches, end = fetched_batches(data, self.log_end_offset, self.config.segment_bytes)
        markers = {
            at: marker
            for at, header in batches
            if header[5] & _CONTROL and header[9] >= 0 and (marker := read_marker(data, at)) is not None
        }
        self._write_batches(data[:end], batches, markers, now_ms)
        return end

    def _append_many(
        self, data: memoryview | bytearray | bytes, leader_epoch: int, now_ms: int, origin: Origin
    ) -> AppendResult:
        """Several batches, or batches that keep their offsets: all are written, or none."""
        buffer = bytearray(data)
        batches = laid_out(buffer, self.log_end_offset, None if origin is Origin.REPLICATION else leader_epoch)
        markers: dict[int, EndMarker] = {}
        for at, header in batches:
            if header.is_control and header.producer_id >= 0:
                marker = read_marker(buffer, at)
                if marker is not None:
                    self.producers.check_marker(header, marker, origin)
                    markers[at] = marker
            elif header.producer_id >= 0:
                repeated = self._check_producer(header, origin, now_ms)
                if repeated is not None:
                    return self._already_there(repeated)
        max_timestamp = self._write_batches(buffer, batches, markers, now_ms)
        return AppendResult(batches[0][1].base_offset, self.log_end_offset - 1, max_timestamp, False, self.flush_due)

    def _write_batches(
        self,
        data: memoryview | bytearray,
        batches: Sequence[tuple[int, tuple[int, ...]]],
        markers: Mapping[int, EndMarker],
        now_ms: int,
    ) -> int:
        """One write for all of them, each with its position and header; then nothing can fail. Gives their largest
        timestamp."""
        first, last = batches[0][1], batches[-1][1]
        last_offset = last[0] + last[6]
        max_timestamp = max(header[8] for _, header in batches)
        segment = self._active
        if (
            segment.size + len(data) > self._size_limit
            or last_offset > self._offset_limit
            or max_timestamp > self._roll_at
        ):
            segment = self._prepare(len(data), last_offset, max_timestamp, now_ms, first[0])
        if markers:
            self._load_aborted()
        start = segment.size
        try:
            self.disk.write_all(self._fd, data, start)
        except OSError as error:
            raise self._undo_append(start, error) from error
        self.log_end_offset = last_offset + 1
        if start == 0 and len(batches) > 1:
            segment.first_timestamp = first[8]
            self._forget_limits()
        recent, epochs = self._recent, self.leader_epochs
        for at, header in batches:
            segment.note_batch(start + at, header[1] + LOG_OVERHEAD, header[0] + header[6], header[8])
            recent[header[0]] = start + at
            if header[2] != epochs.latest:
                epochs.assign(header[2], header[0])
            if header[9] >= 0:
                log_transactions.record_batch(self, segment, header, markers.get(at), now_ms)
        segment.modified_ms = now_ms
        if segment.is_index_full(self.config.segment_index_bytes):
            self._forget_limits()
        if len(recent) >= _RECENT_BATCHES:
            self._older, self._recent = recent, {}
        return max_timestamp

    def note_refused(self, data: memoryview | bytearray | bytes, code: ErrorCode, now_ms: int) -> None:
        """A client's batch was refused for something that passes, before the log was asked: what its producer has sent
        behind it must not be taken, nor be told of a gap."""
        if len(data) >= HEADER_SIZE:
            self._refused.note(_HEADER.unpack_from(data), self.producers, code, now_ms)

    def _check_producer(self, header: tuple[int, ...], origin: Origin, now_ms: int) -> Batch | None:
        """The batch that this one repeats, or None to go on. Raises ApiError."""
        try:
            repeated = self._check_sequence(header, origin)
        except ApiError as error:
            if error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._refused.check(header, self.producers, now_ms)
            raise
        if repeated is None and self._refused and origin is Origin.CLIENT:
            self._refused.check(header, self.producers, now_ms)
        return repeated

    def _check_sequence(self, header: tuple[int, ...], origin: Origin) -> Batch | None:
        """A snapshot brings back one batch of the last five, so a batch that looks out of order shortly after a start
        is compared with the log itself before it is refused."""
        try:
            return self.producers.check(header, origin)
        except ApiError as error:
            out_of_order = error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if not out_of_order or not log_transactions.refill_history(self, header[9]):
                raise
        return self.producers.check(header, origin)

    def _already_there(self, batch: Batch) -> AppendResult:
        _, last_offset, offset_delta, timestamp = batch
        return AppendResult(last_offset - offset_delta, last_offset, timestamp, True, self.flush_due)

    def _add_index_entry(self, segment: Segment, last_offset: int, position: int) -> None:
        segment.offsets.append(last_offset, position)
        segment.times.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
        if segment.is_index_full(self.config.segment_index_bytes):
            self._forget_limits()

    def _load_aborted(self) -> None:
        """Before a marker is written: what it aborts goes into this index, and then nothing may fail any more."""
        if not self._active.txns.loaded:
            try:
                log_transactions.aborted_in(self, self._active)
            except OSError as error:
                raise self._disk_error(error) from error

    def _undo_append(self, position: int, error: OSError) -> ApiError:
        """No half batch stays behind. Returns what to raise. A full disk may get room again; any other error means
        that the directory can no longer be relied on."""
        self._forget_limits()
        try:
            self.disk.ftruncate(self._fd, position)
        except OSError as second:
            error = second
        return self._disk_error(error)

    def _disk_error(self, error: OSError) -> ApiError:
        """A disk that is full, or a process that is out of descriptors, may recover; a disk that fails is given up."""
        if error.errno in PASSING:
            self.owner.disk_refused(self, error)
        else:
            self.owner.disk_failed(self, error)
        reason = "the disk is full" if error.errno in FULL else error.strerror
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {reason}")

    def fail(self, reason: str) -> None:
        """Refuse every append and read from now on."""
        self._refusal = reason
        self._forget_limits()
        self._forget_positions()

    # -- segments --

    def _prepare(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, base_offset: int | None = None
    ) -> Segment:
        """Find or make the segment for an append of `size` bytes, and set the limits for the ones after it."""
        self.check_usable()
        if size > self.config.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit into a segment of {self.config.segment_bytes} bytes (segment.bytes)",
            )
        segment = self._active
        try:
            if rolling.is_due(self.config, segment, size, last_offset, max_timestamp, now_ms):
                # Also where a compacted leader's records leave a gap: one between segments means that records are lost.
                is_too_far = base_offset is not None and last_offset - self.log_end_offset > INT32_MAX
                segment = self.roll(now_ms, base_offset if is_too_far else None)
            if segment.size == 0:
                segment.first_timestamp = max_timestamp
            segment.get_ready_to_append()
            self._fd = segment.file().fd
            first = segment.first_batch_timestamp()
        except OSError as error:
            raise self._disk_error(error) from error
        self._size_limit = self.config.segment_bytes
        self._offset_limit = segment.max_offset
        # Without timestamps a segment ages by the clock: never let such an append pass unexamined.
        self._roll_at = first + rolling.segment_ms(self.config, segment) if first >= 0 else -2
        return segment

    def _forget_limits(self) -> None:
        """Send the next append through `_prepare`."""
        self._size_limit = -1
        self._offset_limit = -1
        self._roll_at = -2

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Close the active segment and start one at the log end, or at `base_offset` further on."""
        start = max(self.log_end_offset, base_offset or 0)
        old = self._active
        if old.base_offset == start:
            return old
        old.finish()
        self._take_snapshot(start)
        segment = self.new_segment(start, now_ms)
        self.segments.append(segment)
        self._activate(segment)
        if self.owner.flusher is not None:
            self.flush_async(start)
        return segment

    def new_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = Segment(self.dir, base_offset, index_interval=self.config.index_interval_bytes, disk=self.disk)
        segment.create(now_ms)
        segment.jitter_ms = rolling.jitter_ms(self.config)
        self.folder_changed()
        return segment

    def folder_changed(self) -> None:
        """Files came or went: the next flush syncs the folder as well."""
        self._flushing.folder_changed = True

    def _activate(self, segment: Segment) -> None:
        self._active = segment
        self._snapshot_position = segment.size
        self._forget_positions()
        self._forget_limits()

    # -- making durable --

    @property
    def flush_due(self) -> bool:
        """flush.messages is reached."""
        return self.log_end_offset - self.recovery_point >= self._flush_messages

    def flush(self, up_to: int | None = None) -> None:
        """Sync now, in this thread. Raises ApiError when the disk fails."""
        self.check_usable()
        self._flushing.now(self.log_end_offset if up_to is None else up_to)

    def flush_async(self, up_to: int | None = None) -> FlushFuture:
        """Sync in a flush thread; the future, which can be awaited, is done once everything below `up_to`
        (default: all) is on disk."""
        self.check_usable()
        return self._flushing.later(self.log_end_offset if up_to is None else up_to)

    def _take_snapshot(self, offset: int) -> None:
        if offset and offset not in self.snapshots.offsets:
            self.snapshots.write(offset, self.producers.snapshot_entries())
            self.snapshots.delete_strays(segment.base_offset for segment in self.segments)
