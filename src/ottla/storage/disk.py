"""The disk port: every system call that changes a file goes through here, so that a test can make one fail.

`Disk` is the real thing. Fault injectors subclass it: a short write, ENOSPC, EIO from fsync, a crash at the n-th step.
Reads are not part of it: a read that fails is the caller's OSError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class OpenFile:
    """A file descriptor that closes when nobody holds it any more.

    A fetch that is being sent keeps the file of a deleted segment alive by holding this object.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        try:
            os.close(self.fd)
        except OSError:  # nothing can be done about it, and data is only trusted after fsync
            pass


def read_whole(path: str | Path) -> bytes:
    """A small file in three system calls: a start opens thousands of them. Raises OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        data = os.read(fd, 8192)
        if len(data) < 8192:
            return data
        parts = [data]
        while data:
            data = os.read(fd, 1 << 20)
            parts.append(data)
        return b"".join(parts)
    finally:
        os.close(fd)


class Disk:
    """The system calls under a log."""

    def open(self, path: str | Path, flags: int) -> OpenFile:
        return OpenFile(os.open(path, flags, 0o644))

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        return os.pwrite(fd, data, position)

    def pwritev(self, fd: int, buffers: Sequence[Any], position: int) -> int:
        return os.pwritev(fd, buffers, position)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def rename(self, source: str | Path, target: str | Path) -> None:
        os.rename(source, target)

    def unlink(self, path: str | Path) -> None:
        os.unlink(path)

    def write_all(self, fd: int, data: Any, position: int) -> None:
        """Write to the end or raise: a file system that fills up first writes short, then says ENOSPC."""
        view = memoryview(data).cast("B")
        while view:
            written = self.pwrite(fd, view, position)
            view = view[written:]
            position += written

    def copy_range(self, source: int, start: int, target: int, position: int, size: int) -> int:
        """Copy up to `size` bytes between files, in the kernel where the file system can; returns how many, never 0."""
        try:
            copied = os.copy_file_range(source, target, size, start, position)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            copied = 0
        if copied == 0:
            data = os.pread(source, min(size, 1 << 20), start)
            if not data:
                raise OSError(errno.EIO, "a file is shorter than it was")
            self.write_all(target, data, position)
            copied = len(data)
        return copied

    def fsync_path(self, path: str | Path) -> None:
        """Sync a file or a directory by name."""
        file = OpenFile(os.open(path, os.O_RDONLY))
        self.fsync(file.fd)

    def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
        """The whole file or the old one, never a half: written aside, then renamed over, as Kafka does."""
        aside = f"{path}.tmp"
        file = self.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.write_all(file.fd, content, 0)
        if sync:
            self.fsync(file.fd)
        self.rename(aside, path)
        if sync:
            self.fsync_path(path.parent)


class FastDisk(Disk):
    """The same calls without a Python frame in between: worth half a microsecond on each append."""

    pwrite = staticmethod(os.pwrite)  # type: ignore[assignment]
    pwritev = staticmethod(os.pwritev)  # type: ignore[assignment]


DISK = FastDisk()
