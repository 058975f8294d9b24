"""The memory of one connection's request, from its first bytes until it is answered, as all connections share it.

That of a large request goes back in several turns of the loop: to free ninety megabytes at once would take longer than
anything else that is done with them.
"""

from __future__ import annotations

import asyncio
import mmap
from typing import TYPE_CHECKING

from ottla.server.frames import Buffer, FrameReader
from ottla.server.request_memory import Receiver

if TYPE_CHECKING:
    from ottla.server.listener import Listener

# A frame up to this size gets its whole buffer at once; a larger one must first send what it announced.
_TRUSTED_BYTES = 2 * 1024 * 1024
# A frame grows by no more at a time: to make so many pages is what everybody else waits for.
_GROWTH_BYTES_MAX = 4 * 1024 * 1024
# What is freed at once.
_FREED_BYTES = 8 * 1024 * 1024


class FrameMemory:
    __slots__ = ("_buffer", "_charged", "_listener")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        # What the request that is received, or worked on, counts for.
        self._charged = 0
        # Where a large request lies that has arrived.
        self._buffer: mmap.mmap | None = None

    def begin(self, receiver: Receiver, size: int, arrived: int) -> bytearray:
        """The buffer of a frame of which a part is here."""
        memory = self._listener.memory
        # At least a byte: what has no room cannot be told from a client that has gone.
        trusted = arrived + 1 if memory.is_short else min(size, _TRUSTED_BYTES)
        buffer = self._listener.frame_buffer(trusted, arrived)
        self._charged = len(buffer)
        memory.begin(receiver, self._charged)
        self._listener.receiving += 1
        return buffer

    def grow(self, receiver: Receiver, frames: FrameReader) -> bool:
        """Room for more of the frame, where its buffer is full. False: not now; who receives it is told when."""
        if missing := frames.missing_room:
            assert frames.buffer is not None
            growth = min(len(frames.buffer), _GROWTH_BYTES_MAX, missing)
            if not self._listener.memory.take(receiver, growth):
                return False
            self._charged += growth
            frames.grow(growth)
        return True

    def end_frame(self, receiver: Receiver, buffer: Buffer) -> None:
        """All of it is here, or nothing more will come."""
        if isinstance(buffer, mmap.mmap):
            self._buffer = buffer
        self._listener.receiving -= 1
        self._listener.memory.end(receiver)

    def release(self, receiver: Receiver) -> None:
        """The request is answered."""
        if self._buffer is not None:
            buffer, self._buffer = self._buffer, None
            self._listener.loop.call_soon(give_back, self._listener.loop, buffer)
        if self._charged:
            charged, self._charged = self._charged, 0
            self._listener.memory.release(receiver, charged)


def give_back(loop: asyncio.AbstractEventLoop, buffer: mmap.mmap) -> None:
    """From its end, a piece in each turn."""
    left = len(buffer) - _FREED_BYTES
    try:
        if left > 0:
            buffer.resize(left)
            loop.call_soon(give_back, loop, buffer)
        else:
            buffer.close()
    except BufferError:
        pass  # somebody still looks at it, and frees it when that is over
