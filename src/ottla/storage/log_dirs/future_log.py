"""A copy of a log on its way into another log directory, made while the log is in use.

Sealed segments do not change, so they are copied first, by any thread. Whatever was sealed, compacted or deleted
meanwhile is made good in further rounds, each smaller than the one before. When only a little is left, the log is
closed, the rest is copied and synced, and the folder gets the partition's name: a pause of a few milliseconds.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ottla.storage.disk import OpenFile
from ottla.storage.log import Log
from ottla.storage.segments.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    Segment,
    file_name,
)

# An active segment of up to so much is copied while the log stands still.
STANDSTILL_BYTES = 1 << 20
_COPY_BYTES = 8 << 20
# So much may have to be synced when a copy is to end early.
_SYNC_BYTES = 64 << 20
# Files that are about to go, or that nobody knows of yet.
_PASSING = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)


class CopyGivenUp(Exception):
    """Somebody wants something else by now: another place, no log at all, or to stop."""


class FutureLog:
    def __init__(
        self,
        log: Log,
        folder: Path,
        rate: Callable[[], float] = lambda: math.inf,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`rate`: bytes per second; it may change meanwhile."""
        self._rate, self._monotonic, self._sleep = rate, monotonic, sleep
        self.log = log
        self.folder = folder
        self._disk = log.disk
        # Base offset -> the segment as it was copied: compaction puts another object in its place, and a follower may
        # cut one back and fill it with other records.
        self._copied: dict[int, tuple[Segment, int]] = {}
        self._given_up = False
        self._finishing = False
        folder.mkdir()

    def give_up(self) -> None:
        """A copy that is under way in another thread ends with CopyGivenUp after a few megabytes at most. So does one
        whose log is deleted."""
        self._given_up = True

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment, _ in list(self._copied.values()))

    @property
    def end_offset(self) -> int:
        """Up to here everything is copied."""
        sealed = self.log.segments[:-1]
        for segment in sealed:
            if not self._is_copied(segment):
                return max(segment.base_offset, self.log.log_start_offset)
        return self.log.segments[-1].base_offset

    def missing(self, now_ms: int) -> list[Segment]:
        """Sealed segments that are not copied yet. Only in the log's own thread."""
        if self.log.segments[-1].size > STANDSTILL_BYTES:
            self.log.roll(now_ms)
        self._forget_changed()
        return [segment for segment in self.log.segments[:-1] if not self._is_copied(segment)]

    def _is_copied(self, segment: Segment) -> bool:
        return self._copied.get(segment.base_offset) == (segment, segment.cuts)

    def _forget_changed(self) -> None:
        same = {segment.base_offset for segment in self.log.segments[:-1] if self._is_copied(segment)}
        for base_offset in [copied for copied in self._copied if copied not in same]:
            del self._copied[base_offset]
            self._remove(file_name(base_offset, ""))

    def copy(self, segments: Iterable[Segment]) -> None:
        """In any thread. A segment that vanishes meanwhile is left out; the next round knows. Raises CopyGivenUp."""
        for segment in segments:
            cuts = segment.cuts
            try:
                self._copy_files(path.name for path in segment.paths() if path.exists())
            except FileNotFoundError:
                self._remove(file_name(segment.base_offset, ""))
                continue
            self._copied[segment.base_offset] = (segment, cuts)

    def finish(self) -> None:
        """Copy what is left of a log that was just closed, and make all of it durable."""
        self._finishing = True
        self._forget_changed()
        have = {file_name(base_offset, "") for base_offset in self._copied}
        names = [file.name for file in os.scandir(self.log.dir) if file.is_file() and not file.name.endswith(_PASSING)]
        self._copy_files(name for name in names if name.split(".")[0] not in have or name.endswith(SNAPSHOT_SUFFIX))
        self._disk.fsync_path(self.folder)

    def abandon(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _copy_files(self, names: Iterable[str]) -> None:
        for name in names:
            source = OpenFile(os.open(self.log.dir / name, os.O_RDONLY))
            target = self._disk.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            size, position, synced = os.fstat(source.fd).st_size, 0, 0
            while position < size:
                if self._given_up or (self.log.failed is not None and not self._finishing):
                    raise CopyGivenUp
                count = min(_COPY_BYTES, size - position, self._bytes_at_once())
                began_s = self._monotonic()
                copied = self._disk.copy_range(source.fd, position, target.fd, position, count)
                position += copied
                self._rest(copied, began_s)
                if position - synced >= _SYNC_BYTES:
                    self._disk.fsync(target.fd)
                    synced = position
            self._disk.fsync(target.fd)

    def _bytes_at_once(self) -> int:
        """What a tenth of a second may have, so that a throttled copy is given up, or goes faster, soon."""
        rate = self._rate()
        return _COPY_BYTES if self._finishing or rate >= _COPY_BYTES * 10 else max(1, int(rate / 10))

    def _rest(self, copied: int, began_s: float) -> None:
        rate = self._rate()
        if not self._finishing and rate < _COPY_BYTES * 10:
            self._sleep(max(0.0, copied / max(rate, 1) - (self._monotonic() - began_s)))

    def _remove(self, stem: str) -> None:
        for path in self.folder.glob(f"{stem}.*"):
            path.unlink(missing_ok=True)
