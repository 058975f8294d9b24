"""The `.txnindex` of a segment: its aborted transactions, for readers of committed data, in Kafka's format.

    int16 version (0), int64 producer id, int64 first offset, int64 last offset (the marker), int64 last stable offset

Entries are in the order of their markers. Like the other indexes it is kept in memory and written on flush, roll and
close. Unlike them it cannot be seen to lack its end, and what it lacks is read although it was aborted: so the recovery
point moves past a marker only once the file is synced, and recovery finds the entries behind it again from the log.
Every segment of ours has the file, if only an empty one, so that a missing file is known to be lost and is made again
(Kafka leaves empty ones out and cannot tell).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ottla.storage.disk import DISK, Disk, OpenFile, read_whole
from ottla.storage.segments.indexes import CorruptIndex

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    __slots__ = ("_dirty", "_entries", "_is_lost", "base_offset", "disk", "path", "unsynced")

    def __init__(self, path: str | Path, base_offset: int, disk: Disk = DISK) -> None:
        self.path = str(path)
        self.base_offset = base_offset
        self.disk = disk
        # None until somebody asks.
        self._entries: list[AbortedTxn] | None = None
        self._dirty = False
        # What the file had is gone, or is not to be believed. It may be entries that no recovery finds again.
        self._is_lost = False
        # Whether the file has content that no flush has synced.
        self.unsynced = False

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def loaded(self) -> bool:
        return self._entries is not None

    @property
    def is_behind(self) -> bool:
        """Whether the file lacks entries."""
        return self._dirty

    def entries(self) -> list[AbortedTxn]:
        """Raises CorruptIndex when the file is missing or cannot be of this segment."""
        if self._entries is None:
            try:
                raw = read_whole(self.path)
            except FileNotFoundError:
                raise CorruptIndex(f"{self.name} is missing") from None
            self._entries = decode_txn_index(raw, self.base_offset)
        return self._entries

    def append(self, entry: AbortedTxn) -> None:
        self.entries().append(entry)
        self._dirty = True

    def replace(self, entries: Iterable[AbortedTxn]) -> None:
        self._entries = list(entries)
        self._dirty = True

    def truncate_to(self, offset: int) -> None:
        """Keep the transactions whose marker is below `offset`."""
        entries = self.entries()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            self.replace(kept)

    def replace_for_good(self, entries: Iterable[AbortedTxn]) -> None:
        """In memory and on disk: no flush comes back to a segment below the recovery point."""
        self.replace(entries)
        self._is_lost = True
        self.persist()

    def discard(self) -> None:
        """Forget the entries and the file: the next reader finds it missing and makes it again."""
        self._entries = None
        self._dirty = self.unsynced = False
        self._is_lost = True
        Path(self.path).unlink(missing_ok=True)

    def persist(self) -> None:
        """Write the file if it is behind."""
        if not self._dirty or self._entries is None:
            return
        raw = self._encode()
        if self._is_lost:
            # All of it at once: who dies in the middle would leave a file that is as good as a whole one. An empty one
            # is no worse than none.
            self.disk.replace_file(Path(self.path), raw, sync=bool(raw))
            self._dirty = self.unsynced = self._is_lost = False
            return
        self.unsynced = True
        file = self.disk.open(self.path, os.O_WRONLY | os.O_CREAT)
        self.disk.write_all(file.fd, raw, 0)
        self.disk.ftruncate(file.fd, len(raw))
        self._dirty = False

    def open_unsynced(self) -> list[OpenFile]:
        """The file, unless it is synced. Who syncs it says so in `unsynced`."""
        return [self.disk.open(self.path, os.O_WRONLY | os.O_CREAT)] if self.unsynced else []

    def _encode(self) -> bytes:
        return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self._entries or ())

    def release(self) -> None:
        if not self._dirty:
            self._entries = None


def decode_txn_index(raw: bytes, base_offset: int) -> list[AbortedTxn]:
    if len(raw) % _ENTRY.size:
        raise CorruptIndex(f"a transaction index of {len(raw)} bytes")
    entries: list[AbortedTxn] = []
    previous = base_offset - 1
    for version, *fields in _ENTRY.iter_unpack(raw):
        entry = AbortedTxn(*fields)
        if version != _VERSION or entry.last_offset <= previous or entry.first_offset >= entry.last_offset:
            raise CorruptIndex(f"a transaction index with an entry that cannot be: {entry}")
        previous = entry.last_offset
        entries.append(entry)
    return entries
