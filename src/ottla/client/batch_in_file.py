"""A record batch that stays in a file: the kernel sends it from there, and no process copies it.

Only its header is in memory, since producer and sequence number are put into that.
"""

from __future__ import annotations

import os
from io import FileIO

from ottla.common.failures import Retriable

BATCH_HEADER_BYTES = 61


class FileCut(Retriable):
    """A file is shorter than it was."""

    def __init__(self, file: FileIO) -> None:
        super().__init__(f"{os.fspath(file.name)} is shorter than it was.")


class KeptOpen(FileIO):
    """A file that is open until nobody refers to it: batches may be sent again until they are acknowledged."""

    def __del__(self) -> None:
        self.close()


class BatchInFile:
    """`size` bytes from `position` on. Raises OSError, FileCut."""

    __slots__ = ("file", "head", "position", "size")

    def __init__(self, file: KeptOpen, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size
        # May be changed; what lies under it in the file is not read again.
        self.head = bytearray(self._read(BATCH_HEADER_BYTES, position))

    def __len__(self) -> int:
        return self.size

    def __bytes__(self) -> bytes:
        return bytes(self.head) + self.read_body()

    @property
    def body_position(self) -> int:
        return self.position + len(self.head)

    @property
    def body_size(self) -> int:
        return self.size - len(self.head)

    def read_body(self) -> bytes:
        return self._read(self.body_size, self.body_position)

    def _read(self, size: int, position: int) -> bytes:
        data = os.pread(self.file.fileno(), size, position)
        if len(data) != size:
            raise FileCut(self.file)
        return data
