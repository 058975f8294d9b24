"""What a log takes and gives back: small values on the hot path, so plain classes with slots."""

from __future__ import annotations

from enum import Enum

from ottla.storage.disk import OpenFile


class Origin(Enum):
    """Who appends: it decides which checks of the producer state apply and who assigns offsets."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # our own writes: group state, transaction markers; sequences are not checked
    REPLICATION = "replication"  # from a leader: offsets and epochs are kept as they came


class AppendResult:
    __slots__ = ("base_offset", "duplicate", "flush_due", "last_offset", "timestamp")

    def __init__(
        self, base_offset: int, last_offset: int, timestamp: int, duplicate: bool = False, flush_due: bool = False
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        # Largest timestamp of the batches; for a duplicate, that of the original.
        self.timestamp = timestamp
        # The batch was there already: the offsets are those of the first time, nothing was written.
        self.duplicate = duplicate
        # flush.messages is reached: acknowledge, and move the high watermark, only after `flush_async()` is done.
        self.flush_due = flush_due

    def __repr__(self) -> str:
        return f"AppendResult({self.base_offset}..{self.last_offset}, duplicate={self.duplicate})"


class LogSlice:
    """A range of one segment file that starts with the batch holding the offset asked for.

    `file` is valid while the slice lives, whatever happens to the segment meanwhile. An empty slice has file -1.
    `available` counts what could be read there without any limit, up to the end of the segment; `goes_on` says that
    more of it is in the next one.
    """

    __slots__ = ("_owner", "available", "file", "first_offset", "goes_on", "position", "size")

    def __init__(
        self,
        owner: OpenFile | None,
        file: int,
        position: int,
        size: int,
        first_offset: int,
        available: int = 0,
        goes_on: bool = False,
    ) -> None:
        self._owner = owner
        self.available = available
        self.goes_on = goes_on
        self.file = file
        self.position = position
        self.size = size
        self.first_offset = first_offset

    def __repr__(self) -> str:
        return f"LogSlice(offset {self.first_offset}: {self.size} bytes at {self.position})"
