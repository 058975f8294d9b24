"""One round of compaction over one log, as the worker process runs it: map the dirty part, then copy what stays.

Source files are opened once at the start; that the broker renames or deletes them meanwhile does not matter here, and
the broker looks at what is still there before it swaps anything in. Groups are reported one by one, in order: the
broker swaps each in before it hears of the next, since a tombstone may only go after everything before it has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ottla.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, compute_crc, read_header
from ottla.storage.compaction.batch_filter import BatchFilter, LastRecord, Verdict, open_batch
from ottla.storage.compaction.cleaned_segment import CleanedSegment, remove_cleaned
from ottla.storage.compaction.job import CompactionJob, GroupResult, RoundResult, SourceSegment
from ottla.storage.compaction.offset_map import OffsetMap
from ottla.storage.compaction.throttle import Throttle
from ottla.storage.compaction.transaction_walk import TransactionWalk
from ottla.storage.compaction.walk import UnreadableRecords
from ottla.storage.disk import DISK, Disk
from ottla.storage.producers.producer_state import EndMarker, read_marker
from ottla.storage.segments.segment import LOG_SUFFIX, file_name
from ottla.storage.segments.txn_index import AbortedTxn

_CHUNK_BYTES = 1024 * 1024


class CorruptSegment(ValueError):
    """A batch is damaged. Rewriting it would sign damaged data with a good CRC, so compaction stops here."""


def compact(job: CompactionJob, report: Callable[[GroupResult], None], disk: Disk = DISK) -> RoundResult:
    """Raises CorruptSegment, SegmentTooLarge, FileNotFoundError (the log went away) and other OSErrors."""
    return _Round(job, disk).run(report)


class _Round:
    def __init__(self, job: CompactionJob, disk: Disk) -> None:
        self._job = job
        self._disk = disk
        self._directory = Path(job.directory)
        self._throttle = Throttle(job.bytes_per_second)
        self._segments = [segment for group in job.groups for segment in group]
        self._sources = {
            segment.base_offset: disk.open(self._directory / file_name(segment.base_offset, LOG_SUFFIX), os.O_RDONLY)
            for segment in self._segments
            if segment.size  # an empty one may have no file
        }
        self._map = OffsetMap(job.map_bytes_max, job.first_dirty_offset)
        self._bytes_read = 0
        self._bytes_written = 0

    def run(self, report: Callable[[GroupResult], None]) -> RoundResult:
        remove_cleaned(self._directory)
        end_offset = self._fill_map()
        batch_filter, transactions = self._make_filter()
        for group in self._job.groups:
            below = [segment for segment in group if segment.base_offset < end_offset]
            if below:
                report(self._clean_group(below, batch_filter, transactions))
        return RoundResult(
            end_offset,
            len(self._map),
            self._bytes_read,
            self._bytes_written,
            batch_filter.records_removed,
            batch_filter.batches_unreadable,
        )

    # -- first pass --

    def _fill_map(self) -> int:
        """Returns where the map ends: as far as its memory reached, or the end of the cleanable part."""
        job = self._job
        # Not the ones that ended before: their markers are not seen here, and would never end.
        transactions = self._walk_transactions(job.first_dirty_offset)
        ends = [*(segment.base_offset for segment in self._segments[1:]), job.upper_offset]
        for segment, end in zip(self._segments, ends, strict=False):
            if end <= job.first_dirty_offset:
                continue
            for _, chunk, at, header in self._batches(segment) if segment.size else ():
                if header.is_control:
                    transactions.marker_is_done(header, _marker(chunk, at, header))
                elif not transactions.is_aborted(header) and header.last_offset >= job.first_dirty_offset:
                    if not self._map.has_room(header.record_count):
                        return self._map.latest + 1
                    self._add_to_map(chunk, at, header)
                self._map.latest = max(self._map.latest, header.last_offset)
            # Offsets at the end of the segment may be of batches that went in an earlier round.
            self._map.latest = max(self._map.latest, end - 1)
        return self._map.latest + 1

    def _add_to_map(self, chunk: bytes, at: int, header: BatchHeader) -> None:
        try:
            walked = open_batch(chunk, at, header)
        except UnreadableRecords:
            return
        first = self._job.first_dirty_offset - header.base_offset
        if first > 0:  # the log was made to start inside this batch
            pairs = [pair for pair in zip(walked.keys, walked.deltas, strict=True) if pair[1] >= first]
            self._map.put((key for key, _ in pairs), (header.base_offset + delta for _, delta in pairs))
        else:
            base = header.base_offset
            self._map.put(walked.keys, [base + delta for delta in walked.deltas])

    def _walk_transactions(self, start: int = 0) -> TransactionWalk:
        """For a walk that begins at `start`."""
        entries = [AbortedTxn(*row) for row in self._job.aborted]
        return TransactionWalk(entry for entry in entries if entry.last_offset >= start)

    # -- second pass --

    def _make_filter(self) -> tuple[BatchFilter, TransactionWalk]:
        job = self._job
        transactions = self._walk_transactions()
        last_records = {producer_id: LastRecord(offset, epoch) for producer_id, offset, epoch in job.producers}
        batch_filter = BatchFilter(
            self._map,
            transactions,
            last_records,
            upper_offset=job.upper_offset,
            now_ms=job.now_ms,
            new_horizon_ms=job.new_horizon_ms,
        )
        return batch_filter, transactions

    def _clean_group(
        self, group: list[SourceSegment], batch_filter: BatchFilter, transactions: TransactionWalk
    ) -> GroupResult:
        output = CleanedSegment(
            self._directory,
            group[0].base_offset,
            index_interval=self._job.index_interval_bytes,
            throttle=self._throttle,
            disk=self._disk,
        )
        differs = len(group) > 1
        try:
            for segment in group:
                if segment.size == 0:
                    continue
                source = self._sources[segment.base_offset]
                for position, chunk, at, header in self._batches(segment):
                    verdict = batch_filter.apply(chunk, at, header)
                    if verdict is Verdict.KEEP:
                        output.keep(source, position, chunk, at, header)
                    else:
                        differs = True
                        if isinstance(verdict, bytearray):
                            output.write(verdict)
            aborted = transactions.take_retained()
            if differs:
                output.finish(aborted, group[-1].modified_ms)
                self._bytes_written += output.segment.size
        except BaseException:
            output.discard()
            raise
        return GroupResult([segment.base_offset for segment in group], output.segment.size, differs)

    # -- reading --

    def _batches(self, segment: SourceSegment) -> Iterator[tuple[int, bytes, int, BatchHeader]]:
        """(position, chunk, position in the chunk, header) of each batch, whole and with a CRC that is right."""
        fd = self._sources[segment.base_offset].fd
        position, wanted = 0, _CHUNK_BYTES
        while position < segment.size:
            chunk = os.pread(fd, min(wanted, segment.size - position), position)
            at, needed = 0, HEADER_SIZE
            while at + HEADER_SIZE <= len(chunk):
                header = read_header(chunk, at)
                _check_header(segment, position + at, header)
                if at + header.size > len(chunk):
                    needed = header.size
                    break
                if compute_crc(chunk, at, header.size) != header.crc:
                    raise CorruptSegment(f"wrong CRC at position {position + at} of segment {segment.base_offset}")
                yield position + at, chunk, at, header
                at += header.size
            if at == 0 and needed <= wanted:
                raise CorruptSegment(f"segment {segment.base_offset} ends inside a batch at position {position}")
            wanted = max(_CHUNK_BYTES, needed)
            self._bytes_read += at
            self._throttle.spend(at)
            position += at


def _check_header(segment: SourceSegment, position: int, header: BatchHeader) -> None:
    too_short = header.length < HEADER_SIZE - LOG_OVERHEAD
    if header.magic != 2 or too_short or position + header.size > segment.size:
        raise CorruptSegment(f"no batch at position {position} of segment {segment.base_offset}")


def _marker(chunk: bytes, at: int, header: BatchHeader) -> EndMarker | None:
    return read_marker(chunk, at) if header.record_count else None
