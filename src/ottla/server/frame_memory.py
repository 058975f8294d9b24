"""The memory of one connection's request, from its first bytes until it is answered, as all connections share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.server.frames import FrameReader
from ottla.server.request_memory import Receiver

if TYPE_CHECKING:
    from ottla.server.listener import Listener

# A frame up to this size gets its whole buffer at once; a larger one must first send what it announced.
_TRUSTED_BYTES = 2 * 1024 * 1024
# A frame grows by no more at a time: to make so many pages is what everybody else waits for.
_GROWTH_BYTES_MAX = 4 * 1024 * 1024


class FrameMemory:
    __slots__ = ("_charged", "_listener")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        # What the request that is received, or worked on, counts for.
        self._charged = 0

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

    def end_frame(self, receiver: Receiver) -> None:
        """All of it is here, or nothing more will come."""
        self._listener.receiving -= 1
        self._listener.memory.end(receiver)

    def release(self, receiver: Receiver) -> None:
        """The request is answered."""
        if self._charged:
            charged, self._charged = self._charged, 0
            self._listener.memory.release(receiver, charged)
