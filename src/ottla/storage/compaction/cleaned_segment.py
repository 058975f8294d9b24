"""The files of one cleaned segment, written under the suffix `.cleaned`.

Batches that stay as they are become ranges of the source file, which the kernel copies (`copy_file_range`, on some
file systems without copying at all); only rewritten ones pass through here as bytes. Nothing is created before
something differs from the source, so a segment that loses nothing is not written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ottla.records.batch import BatchHeader, read_header
from ottla.storage.compaction.throttle import Throttle
from ottla.storage.disk import DISK, Disk, OpenFile
from ottla.storage.segments.indexes import INT32_MAX
from ottla.storage.segments.segment import CLEANED_SUFFIX, LOG_SUFFIX, Segment
from ottla.storage.segments.txn_index import AbortedTxn

_BUFFER_BYTES = 1024 * 1024
# Between rewritten batches a short unchanged one goes through the buffer: cheaper than two more system calls.
_SHORT_BYTES = 32 * 1024
_COPY_BYTES = 8 * 1024 * 1024


def remove_cleaned(directory: Path) -> None:
    """Throw away what a round that was cut short left behind: the next one may group segments otherwise."""
    for path in directory.glob(f"*{CLEANED_SUFFIX}"):
        path.unlink(missing_ok=True)


class SegmentTooLarge(ValueError):
    """What is left does not fit into a segment file (rewriting a batch can make it larger)."""


class CleanedSegment:
    def __init__(
        self, directory: Path, base_offset: int, *, index_interval: int, throttle: Throttle, disk: Disk = DISK
    ) -> None:
        self.segment = Segment(directory, base_offset, index_interval=index_interval, suffix=CLEANED_SUFFIX, disk=disk)
        self._disk = disk
        self._throttle = throttle
        self._file: OpenFile | None = None
        self._written = 0
        self._buffer = bytearray()
        # A range of a source file that is still to be copied.
        self._source: OpenFile | None = None
        self._start = self._end = 0
        self.differs = False

    def keep(self, source: OpenFile, position: int, chunk: bytes, at: int, header: BatchHeader) -> None:
        """The batch stays as it is: at `position` of the source, and at `at` of the chunk that was read from it."""
        size = header.size
        if self._buffer and size <= _SHORT_BYTES:
            self._append(memoryview(chunk)[at : at + size])
        elif source is self._source and position == self._end:
            self._end += size
        else:
            self._flush()
            self._source, self._start, self._end = source, position, position + size
        self._note(size, header.last_offset, header.max_timestamp)

    def write(self, batch: bytearray) -> None:
        header = read_header(batch)
        if self._source is not None:
            self._flush()
        self._append(batch)
        self._note(len(batch), header.last_offset, header.max_timestamp)

    def _note(self, size: int, last_offset: int, max_timestamp: int) -> None:
        segment = self.segment
        if segment.size + size > INT32_MAX:
            raise SegmentTooLarge(f"the cleaned segment {segment.base_offset} passes {INT32_MAX} bytes")
        segment.note_batch(segment.size, size, last_offset, max_timestamp)

    def _append(self, data: bytearray | memoryview) -> None:
        self._buffer += data
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._source is not None:
            self._copy_range(self._source)
            self._source = None
        elif self._buffer:
            self._disk.write_all(self._target().fd, self._buffer, self._written)
            self._written += len(self._buffer)
            self._throttle.spend(len(self._buffer))
            self._buffer.clear()

    def _target(self) -> OpenFile:
        if self._file is None:
            self._file = self._disk.open(self.segment.path(LOG_SUFFIX), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return self._file

    def _copy_range(self, source: OpenFile) -> None:
        target = self._target()
        while self._start < self._end:
            size = min(_COPY_BYTES, self._end - self._start)
            copied = self._disk.copy_range(source.fd, self._start, target.fd, self._written, size)
            self._start += copied
            self._written += copied
            self._throttle.spend(copied)

    def finish(self, aborted: Iterable[AbortedTxn], modified_ms: int) -> None:
        """Everything is on disk, in all senses, when this returns."""
        self._flush()
        self._target()
        self.segment.txns.replace(aborted)
        self.segment.finish()
        indexes = [file for index in self.segment.indexes for file in index.open_unsynced()]
        for file in [self._target(), *indexes]:
            self._disk.fsync(file.fd)
        # Retention of records without timestamps goes by the age of the file.
        os.utime(self.segment.path(LOG_SUFFIX), ns=(modified_ms * 1_000_000,) * 2)

    def discard(self) -> None:
        """Leave no file behind."""
        for path in self.segment.paths():
            path.unlink(missing_ok=True)
