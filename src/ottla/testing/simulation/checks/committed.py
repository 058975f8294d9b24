"""What is committed in a partition, byte for byte: written down when a leader's watermark passes it, and never changed.

Nothing is compacted in these runs, and what is deleted goes from the beginning: so what a replica has below a watermark
are the same bytes on all of them, from some batch on.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator

from ottla.records.batch import BatchHeader, read_header
from ottla.records.record import Record, read_records
from ottla.storage.log import Log
from ottla.storage.segments.segment import LOG_SUFFIX
from ottla.testing.simulation.checks.violation import Violation

_HEADER_BYTES = 61


class CommittedLog:
    def __init__(self, name: str) -> None:
        self.name = name
        self.data = bytearray()
        self.end_offset = 0
        # Of each batch: the offset, and the byte, behind it.
        self._ends: list[int] = []
        self._byte_ends: list[int] = []
        # Values by offset, of the batches that somebody has asked for.
        self._values: dict[int, bytes | None] = {}

    def byte_end(self, offset: int) -> int:
        """How many bytes are below this offset."""
        count = bisect_right(self._ends, offset)
        return self._byte_ends[count - 1] if count else 0

    def compare(self, log: Log, start: int, offset: int, whose: str) -> int:
        """Whether the log has the committed bytes from `start` on, below `offset`, but for those that were deleted. Up
        to where they are now known to be the same."""
        end, begins = self.byte_end(offset), self._begins(log)
        start = max(start, begins, self.byte_end(log.log_start_offset))
        if end <= start:
            return start
        found = bytes_of(log, start - begins, end - begins)
        if found != self.data[start:end]:
            raise Violation(
                "one value per offset",
                f"{whose}: {self.name} differs from what is committed, {self._where(found, start)}",
            )
        return end

    def _begins(self, log: Log) -> int:
        """How many bytes are before the first that this replica has."""
        return self.byte_end(log.segments[0].base_offset)

    def _where(self, found: bytes, start: int) -> str:
        size = next((i for i, (a, b) in enumerate(zip(found, self.data[start:], strict=False)) if a != b), len(found))
        number = bisect_right(self._byte_ends, start + size)
        first = self._ends[number - 1] if number else 0
        have = "nothing" if size >= len(found) else "something else"
        return f"at offset {first} (byte {start + size}) it has {have}"

    def extend(self, log: Log, watermark: int, whose: str) -> None:
        """What a leader has committed above."""
        found = bytes_of(log, len(self.data) - self._begins(log), None)
        position = 0
        while self.end_offset < watermark:
            if position + _HEADER_BYTES > len(found):
                raise Violation(
                    "watermark above the log",
                    f"{whose}: {self.name} has {watermark}, its bytes end at {self.end_offset}",
                )
            header = read_header(found, position)
            if header.base_offset != self.end_offset:
                raise Violation("offsets without gaps", f"{whose}: {self.name} goes on with {header.base_offset}")
            position += header.size
            self.end_offset = header.last_offset + 1
            self._ends.append(self.end_offset)
            self._byte_ends.append(len(self.data) + position)
        self.data += found[:position]

    def has(self, offset: int, value: bytes | None) -> bool:
        """Whether this is committed there."""
        if offset not in self._values:
            number = bisect_right(self._ends, offset)
            if number >= len(self._ends):
                return False
            position = self._byte_ends[number - 1] if number else 0
            self._values.update((record.offset, record.value) for record in read_records(self.data, position))
        return offset in self._values and self._values[offset] == value

    def value_at(self, offset: int) -> str:
        """For a sentence."""
        return repr(self._values[offset]) if offset in self._values else "nothing"

    def batches(self) -> Iterator[tuple[BatchHeader, list[Record]]]:
        for position in [0, *self._byte_ends[:-1]] if self._ends else []:
            yield read_header(self.data, position), list(read_records(self.data, position))


def bytes_of(log: Log, start: int, end: int | None) -> bytes:
    """Of all segments together."""
    parts, base = [], 0
    for segment in log.segments:
        low, high = max(start - base, 0), segment.size if end is None else min(end - base, segment.size)
        if low < high:
            name = f"{segment.directory}/{segment.base_offset:020d}{LOG_SUFFIX}{segment.suffix}"
            fd = os.open(name, os.O_RDONLY)
            try:
                parts.append(os.pread(fd, high - low, low))
            finally:
                os.close(fd)
        base += segment.size
    return b"".join(parts)
