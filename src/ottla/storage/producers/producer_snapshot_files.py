"""The snapshot files of one partition's folder: one per segment, and one at the log's end after a clean stop."""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right, insort
from collections.abc import Iterable
from pathlib import Path

from ottla.storage.disk import DISK, Disk, read_whole
from ottla.storage.producers.producer_snapshot import (
    CorruptSnapshot,
    ProducerSnapshotEntry,
    decode_snapshot,
    encode_snapshot,
)
from ottla.storage.segments.segment import SNAPSHOT_SUFFIX, file_name

logger = logging.getLogger(__name__)


class SnapshotFiles:
    __slots__ = ("_directory", "_disk", "offsets", "unsynced")

    def __init__(self, directory: Path, offsets: Iterable[int] = (), disk: Disk = DISK) -> None:
        self._directory = directory
        self._disk = disk
        self.offsets = sorted(offsets)
        # Files that the next flush has to sync.
        self.unsynced: list[Path] = []

    def path(self, offset: int) -> Path:
        return self._directory / file_name(offset, SNAPSHOT_SUFFIX)

    def write(self, offset: int, entries: Iterable[ProducerSnapshotEntry]) -> None:
        """A full disk costs only the snapshot: the log can be replayed from the one before."""
        path = self.path(offset)
        try:
            self._disk.replace_file(path, encode_snapshot(entries), sync=False)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            # Whoever is to hear of a full disk does so from what is refused for it, once.
            logger.debug("%s could not be written: %s", path, error.strerror)
            return
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self.unsynced.append(path)

    def latest(self, upper: int) -> tuple[int, list[ProducerSnapshotEntry]] | None:
        """The newest readable snapshot at or below `upper`. Damaged ones are removed."""
        while True:
            at = bisect_right(self.offsets, upper) - 1
            if at < 0:
                return None
            offset = self.offsets[at]
            try:
                return offset, decode_snapshot(read_whole(self.path(offset)))
            except (OSError, CorruptSnapshot) as error:
                logger.warning("%s cannot be used (%s); an older one is taken", self.path(offset), error)
                self.delete(offset)

    def delete(self, offset: int) -> None:
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._remove(self.path(offset))

    def delete_above(self, offset: int) -> int:
        """How many went. Until the folder is synced a power cut may bring them back."""
        above = [known for known in self.offsets if known > offset]
        for known in above:
            self.delete(known)
        return len(above)

    def delete_below(self, offset: int) -> None:
        """Of batches that are gone: what became of the transactions they know as open nobody could tell."""
        for older in [known for known in self.offsets if known < offset]:
            self.delete(older)

    def delete_strays(self, segment_offsets: Iterable[int]) -> None:
        """Keep one per segment and the newest: others are of segments that are gone."""
        keep = {*segment_offsets, *self.offsets[-1:]}
        for surplus in [known for known in self.offsets if known not in keep]:
            self.delete(surplus)

    def _remove(self, path: Path) -> None:
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            pass

    def take_unsynced(self) -> list[Path]:
        taken, self.unsynced = [path for path in self.unsynced if path.exists()], []
        return taken

    def moved_to(self, directory: Path) -> None:
        self._directory = directory
        self.unsynced = []
