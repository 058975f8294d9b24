"""A disk that keeps the order of names, as journaling file systems do, and of unsynced bytes nothing at all.

Names come, change and go in the order in which that was asked for: after a power cut some first part of it has
happened. A sync of a folder makes all of it durable, a sync of a file what was done to its name. The bytes of a file
that were not synced may be there, be missing, or be zeros, also in front of some that are there.
"""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path
from typing import Any

from ottla.storage.disk import OpenFile
from ottla.testing.simulation.durable_disk import DurableDisk, Inode


class Crash(BaseException):
    """The process is gone: nothing that catches errors may go on."""


class JournaledDisk(DurableDisk):
    """One folder. With `crash_in(n)` the process dies before the n-th call that changes something."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        # (old name, new name, inode): None for a name that was not there, or is not any more.
        self._journal: list[tuple[str | None, str | None, Inode]] = []
        self._steps: int | None = None
        for entry in os.scandir(root):
            file = OpenFile(os.open(entry.path, os.O_RDONLY))
            status = os.fstat(file.fd)
            inode = (status.st_dev, status.st_ino)
            self._held[inode] = file
            self._names[entry.name] = inode
            self._synced[inode] = os.pread(file.fd, status.st_size, 0)

    def crash_in(self, steps: int | None) -> None:
        self._steps = steps

    def _step(self) -> None:
        if self._steps is not None:
            self._steps -= 1
            if self._steps < 0:
                raise Crash

    # --- the port

    def open(self, path: str | Path, flags: int) -> OpenFile:
        is_new = bool(flags & os.O_CREAT) and not os.path.exists(path)
        if is_new:
            self._step()
        file = super().open(path, flags)
        if is_new:
            status = os.fstat(file.fd)
            self._journal.append((None, os.path.basename(path), (status.st_dev, status.st_ino)))
        return file

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        if self._steps == 0:  # a process may die in the middle of a write
            super().pwrite(fd, bytes(data)[: len(data) // 2], position)
        self._step()
        return super().pwrite(fd, data, position)

    def ftruncate(self, fd: int, size: int) -> None:
        self._step()
        super().ftruncate(fd, size)

    def rename(self, source: str | Path, target: str | Path) -> None:
        self._step()
        status = os.stat(source)
        super().rename(source, target)
        inode = (status.st_dev, status.st_ino)
        self._journal.append((os.path.basename(source), os.path.basename(target), inode))

    def unlink(self, path: str | Path) -> None:
        self._step()
        status = os.stat(path)
        super().unlink(path)
        self._journal.append((os.path.basename(path), None, (status.st_dev, status.st_ino)))

    def fsync(self, fd: int) -> None:
        self._step()
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            self._commit(len(self._journal))
            return
        inode = (status.st_dev, status.st_ino)
        self._synced[inode] = os.pread(self._hold(fd).fd, status.st_size, 0)
        self._commit(max((number + 1 for number, one in enumerate(self._journal) if one[2] == inode), default=0))

    def _commit(self, count: int) -> None:
        for old, new, inode in self._journal[:count]:
            if old is not None:
                self._names.pop(old, None)
            if new is not None:
                self._names[new] = inode
        del self._journal[:count]

    # --- the cut

    def cut(self, target: Path, rng: random.Random) -> JournaledDisk:
        """What may be found after the power went at this moment, in a folder of its own."""
        self._notice_what_went()
        self._commit(rng.randint(0, len(self._journal)))
        target.mkdir()
        for name, inode in self._names.items():
            (target / name).write_bytes(self._remains(inode, self._synced.get(inode), rng))
        return JournaledDisk(target)

    def _notice_what_went(self) -> None:
        """Files that were removed past this port."""
        names = dict(self._names)
        for old, new, inode in self._journal:
            if old is not None:
                names.pop(old, None)
            if new is not None:
                names[new] = inode
        gone = names.keys() - set(os.listdir(self.root))
        self._journal += [(name, None, names[name]) for name in sorted(gone)]

    def _remains(self, inode: Inode, synced: bytes | None, rng: random.Random) -> bytes:
        remains = super()._remains(inode, synced, rng)
        start = len(synced or b"")
        if len(remains) > start and remains.startswith(synced or b"") and rng.random() < 0.4:
            hole, end = sorted((rng.randint(start, len(remains)), rng.randint(start, len(remains))))
            remains = remains[:hole] + bytes(end - hole) + remains[end:]
        return remains
