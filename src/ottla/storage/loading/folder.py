"""What stands in a partition's folder at a start, after whatever a crash interrupted was finished or taken back.

Replacing segments (compaction) goes through three states of their files, so that a crash at any step is either undone
or completed:

    .cleaned    being written; all of them are thrown away
    .swap       complete; renamed from .cleaned in descending order of offsets, so as long as one .cleaned is left, the
                .swap files at or above it are thrown away too; otherwise the swap is completed: segments in their
                range go, and they lose the suffix
    .deleted    out of use; removed
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ottla.storage.disk import DISK, Disk
from ottla.storage.segments.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
)

logger = logging.getLogger(__name__)


class Folder:
    """`segments` are attached but not opened; the two lists name those that lack an index file."""

    __slots__ = ("directory", "disk", "segments", "snapshot_offsets", "without_index", "without_txn_index")

    def __init__(self, directory: Path, index_interval: int, disk: Disk = DISK) -> None:
        self.directory = directory
        self.disk = disk
        with os.scandir(directory) as entries:
            found = {entry.name: entry for entry in entries}
        if self._tidy(set(found)):
            with os.scandir(directory) as entries:
                found = {entry.name: entry for entry in entries}
        self.segments: list[Segment] = []
        self.without_index: list[Segment] = []
        self.without_txn_index: list[Segment] = []
        self.snapshot_offsets: list[int] = []
        for name, entry in found.items():
            stem, _, suffix = name.partition(".")
            if not stem.isdigit():
                continue
            suffix = f".{suffix}"
            if suffix == LOG_SUFFIX:
                segment = Segment(directory, int(stem), index_interval=index_interval, disk=disk)
                status = entry.stat()
                segment.attach(status.st_size, status.st_mtime_ns // 1_000_000)
                self.segments.append(segment)
                if stem + TXN_INDEX_SUFFIX not in found:
                    self.without_txn_index.append(segment)
                if stem + INDEX_SUFFIX not in found or stem + TIME_INDEX_SUFFIX not in found:
                    self.without_index.append(segment)
            elif suffix == SNAPSHOT_SUFFIX:
                self.snapshot_offsets.append(int(stem))
            elif suffix in SEGMENT_SUFFIXES and stem + LOG_SUFFIX not in found:
                logger.warning("%s: %s has no log; removing it", directory, name)
                disk.unlink(entry.path)
        self.segments.sort(key=lambda segment: segment.base_offset)

    def _tidy(self, names: set[str]) -> bool:
        """Finish or undo what was under way; True when files changed."""
        odd = {name for name in names if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp"))}
        if not odd:
            return False
        cleaned = [_offset(name) for name in odd if name.endswith(CLEANED_SUFFIX)]
        swaps = {name for name in odd if name.endswith(SWAP_SUFFIX)}
        undone = {name for name in swaps if cleaned and _offset(name) >= min(cleaned)}
        for name in sorted((odd - swaps) | undone):
            self.disk.unlink(self.directory / name)
        self._complete_swaps(swaps - undone, names)
        return True

    def _complete_swaps(self, swaps: set[str], names: set[str]) -> None:
        for name in sorted(swaps):
            if not name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
                continue
            new = Segment(self.directory, _offset(name), suffix=SWAP_SUFFIX, disk=self.disk)
            new.attach((self.directory / name).stat().st_size, 0)
            end = max(new.next_offset(), new.base_offset + 1)
            new.release()
            for old in sorted(names):
                if old.endswith(SEGMENT_SUFFIXES) and new.base_offset <= _offset(old) < end:
                    self.disk.unlink(self.directory / old)
        for name in sorted(swaps):
            self.disk.rename(self.directory / name, self.directory / name.removesuffix(SWAP_SUFFIX))


def _offset(name: str) -> int:
    digits = name.split(".", 1)[0]
    return int(digits) if digits.isdigit() else -1
