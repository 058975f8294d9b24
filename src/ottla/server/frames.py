"""What arrives, cut into frames: pure, and the same whatever the pieces in which it comes.

A frame that lies complete in what was received is given out where it lies. One that does not gets a buffer of its own,
which grows with what has *arrived*, never with what was announced; the socket reads straight into it. Beyond a size it
is a mapping of its own: the kernel makes that longer and shorter without moving what is in it. A bytearray is moved by
the allocator when it has no room behind it, and freed in one piece, and either is what everybody else waits for.
"""

from __future__ import annotations

import mmap
import struct
import sys

_SIZE = struct.Struct(">i")
# The shortest request header.
FRAME_BYTES_MIN = 10
# Larger buffers are mappings, where the kernel can make one longer.
_MAPPED_BYTES = 2 * 1024 * 1024 if sys.platform == "linux" else sys.maxsize

Buffer = bytearray | mmap.mmap


class FrameRefused(Exception):
    """A size that no request has."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class FrameReader:
    __slots__ = ("_at", "_data", "_filled", "_size", "ahead", "buffer", "bytes_max", "bytes_min", "incomplete")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_min, self.bytes_max = FRAME_BYTES_MIN, bytes_max
        # What nobody has asked for yet.
        self.ahead = bytearray()
        # Size of the frame that `next` met the beginning of, and how much of it is there.
        self.incomplete: tuple[int, int] | None = None
        # Where the rest of it goes.
        self.buffer: Buffer | None = None
        self._size = 0
        self._filled = 0
        self._data = memoryview(b"")
        self._at = 0

    # --- frames in what was received

    def feed(self, data: memoryview) -> None:
        """Behind what was kept. `data` is looked at until `keep` is called."""
        if self.ahead:
            self.ahead += data
            data, self.ahead = memoryview(self.ahead), bytearray()
        self._data, self._at = data, 0

    def next(self) -> memoryview | None:
        """The next complete frame. Raises FrameRefused."""
        data, start = self._data, self._at + 4
        if start > len(data):
            return None
        (size,) = _SIZE.unpack_from(data, start - 4)
        if size < self.bytes_min or size > self.bytes_max:
            raise FrameRefused(size)
        if start + size > len(data):
            self.incomplete = size, len(data) - start
            return None
        self._at = start + size
        return data[start : self._at]

    def keep(self) -> None:
        """What is left of what was fed waits for its turn, or for the rest of a few bytes."""
        self.ahead += self._data[self._at :]
        self._data, self._at = memoryview(b""), 0

    # --- a frame with a buffer of its own

    def begin(self, buffer: bytearray) -> None:
        """For the frame that is `incomplete`."""
        assert self.incomplete is not None
        self._size, self._filled = self.incomplete
        self.buffer, self.incomplete = buffer, None
        buffer[: self._filled] = self._data[self._at + 4 :]
        self._data, self._at = memoryview(b""), 0

    @property
    def missing_room(self) -> int:
        """What the buffer lacks, once it is full."""
        assert self.buffer is not None
        return self._size - len(self.buffer) if self._filled == len(self.buffer) else 0

    def grow(self, size: int) -> None:
        buffer = self.buffer
        assert buffer is not None
        size += len(buffer)
        if isinstance(buffer, mmap.mmap):
            buffer.resize(size)
        elif size <= _MAPPED_BYTES:
            buffer.extend(bytes(size - len(buffer)))
        else:
            # Private: one that is shared cannot grow.
            self.buffer = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self.buffer[: self._filled] = memoryview(buffer)[: self._filled]

    @property
    def room(self) -> memoryview:
        """Where the next bytes go."""
        return memoryview(self.buffer or b"")[self._filled : self._size]

    def received(self, count: int) -> memoryview | None:
        """So many bytes are in `room`. The frame, if that was all; its buffer is then given up."""
        self._filled += count
        if self._filled < self._size:
            return None
        assert self.buffer is not None
        frame, self.buffer = memoryview(self.buffer)[: self._size], None
        return frame

    def clear(self) -> None:
        self.ahead, self.buffer = bytearray(), None
