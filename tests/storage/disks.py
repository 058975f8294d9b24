"""Disks that fail on purpose."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.storage.disk import Disk


class FullDisk(Disk):
    """Takes `room` more bytes, then writes short, then says ENOSPC."""

    def __init__(self, room: int = 1 << 60) -> None:
        self.room = room

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        return self._write(fd, bytes(data), position)

    def pwritev(self, fd: int, buffers: Sequence[Any], position: int) -> int:
        return self._write(fd, b"".join(bytes(one) for one in buffers), position)

    def _write(self, fd: int, data: bytes, position: int) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.pwrite(fd, data[: self.room], position)
        self.room -= written
        return written


class BrokenDisk(Disk):
    """Fails with EIO in the calls named in `broken`."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.syncs = 0

    def _check(self, call: str) -> None:
        if call in self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        self._check("write")
        return super().pwrite(fd, data, position)

    def pwritev(self, fd: int, buffers: Sequence[Any], position: int) -> int:
        self._check("write")
        return super().pwritev(fd, buffers, position)

    def fsync(self, fd: int) -> None:
        self.syncs += 1
        self._check("fsync")
        super().fsync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        self._check("truncate")
        super().ftruncate(fd, size)


class SlowDisk(Disk):
    """Syncs wait until they are let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.started = threading.Event()
        self.syncs = 0

    def fsync(self, fd: int) -> None:
        self.started.set()
        assert self.go.wait(10)
        self.syncs += 1
        super().fsync(fd)


class Crash(BaseException):
    """The process is gone: nothing that catches errors may go on."""


class CrashingDisk(Disk):
    """Dies before the n-th call that changes a name or removes a file."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def _step(self) -> None:
        if self.steps == 0:
            raise Crash
        self.steps -= 1

    def rename(self, source: str | Path, target: str | Path) -> None:
        self._step()
        super().rename(source, target)

    def unlink(self, path: str | Path) -> None:
        self._step()
        super().unlink(path)
