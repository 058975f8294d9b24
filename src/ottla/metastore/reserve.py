"""Room on the file system that is kept for the changes which free room.

A deletion is first written down, and at zero bytes free that fails: nothing could be deleted any more. So a small file
beside the metadata store holds some room, to be given up piece by piece when an urgent change finds the disk full. It
is made again when there is plenty.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

FILE_NAME = "__ottla_reserve"
_BYTES_MAX = 1 << 20
# In so many pieces it is given up: writers who wait for room may be faster than the change that it is meant for.
_PIECES = 4
# It is made where so many times its size is free.
_PLENTY = 8


class Reserve:
    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def keep(self) -> None:
        """Make it, unless it is there already or room is scarce."""
        with contextlib.suppress(OSError):
            size, free = self._wanted_and_free()
            if self._size() < size and free >= _PLENTY * size:
                fd = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
                try:
                    os.posix_fallocate(fd, 0, size)
                finally:
                    os.close(fd)

    def release(self) -> bool:
        """Give a piece of it back to the file system; whether there was one."""
        try:
            held = self._size()
            if held == 0:
                return False
            piece = max(4096, self._wanted_and_free()[0] // _PIECES)
            os.truncate(self._path, max(0, held - piece))
        except OSError:
            return False
        return True

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except FileNotFoundError:
            return 0

    def _wanted_and_free(self) -> tuple[int, int]:
        found = os.statvfs(self._path.parent)
        total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        return min(_BYTES_MAX, total // 64 // 4096 * 4096), free
