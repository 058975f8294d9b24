"""Which leader epoch began at which offset (KIP-101, -279, -320), kept in leader-epoch-checkpoint.

Entries grow in both columns. Consumers and followers ask where an epoch ended, to find out whether their log went
another way. The file is written and synced with the log's next flush, before the recovery point moves: what a crash
loses, recovery adds again from the batches.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from pathlib import Path

from ottla.storage.disk import DISK, Disk
from ottla.storage.log_dirs.checkpoints import read_epochs, write_epochs

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    __slots__ = ("_dirty", "_disk", "_path", "entries", "is_file_lost", "latest", "unsynced")

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self._path = path
        self._disk = disk
        known = read_epochs(path)
        self.is_file_lost = known is None
        self.entries = known or []
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH
        # In memory only so far.
        self._dirty = False
        # The next flush writes and syncs it.
        self.unsynced = False

    def assign(self, epoch: int, start_offset: int) -> None:
        """`epoch` begins at `start_offset`. Later entries that contradict it are dropped."""
        if epoch < 0:
            return
        if self.entries and epoch == self.latest and start_offset >= self.entries[-1][1]:
            return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(the largest epoch <= the one asked for, where it ended); (-1, -1) when it is not known."""
        if epoch == NO_EPOCH or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        after = bisect_right(self.entries, epoch, key=itemgetter(0))
        end = self.entries[after][1]
        if after == 0:
            # Older than anything we have: the log begins with a later one.
            return epoch, end
        return self.entries[after - 1][0], end

    def epoch_for(self, offset: int) -> int:
        """The epoch that wrote this offset; -1 when it is not known."""
        at = bisect_right(self.entries, offset, key=itemgetter(1)) - 1
        return self.entries[at][0] if at >= 0 else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or behind `end_offset`."""
        if self.entries and self.entries[-1][1] >= end_offset:
            self.entries = [entry for entry in self.entries if entry[1] < end_offset]
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget what lies before the log's start; the epoch in force there now begins with it."""
        before = [entry for entry in self.entries if entry[1] <= start_offset]
        if (before and before[-1] != self.entries[0]) or (before and before[-1][1] < start_offset):
            kept = [entry for entry in self.entries if entry[1] > start_offset]
            self.entries = [(before[-1][0], start_offset), *kept]
            self._changed()

    def _changed(self) -> None:
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH
        self._dirty = self.unsynced = True

    def save(self) -> Path:
        """Write the file if it is behind; gives its path for the sync."""
        if self._dirty:
            write_epochs(self._path, self.entries, self._disk, sync=False)
            self._dirty = False
        self.unsynced = False
        return self._path

    def make_again(self) -> None:
        """What the batches tell, in place of a file that was lost. Also where they tell of no epoch: a log of such
        batches would be read as a whole at each start. Raises OSError."""
        self._changed()
        self.save()
        self.unsynced = True
        self.is_file_lost = False

    def moved_to(self, directory: Path) -> None:
        self._path = directory / self._path.name
