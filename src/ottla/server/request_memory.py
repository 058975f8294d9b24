"""Memory of requests that are being received or worked on: so much for all connections together.

What has arrived counts, not what was announced. A connection that may not have more is not read from until others have
given something back, so the rest of its request waits in the sockets. The request that began first may go on beyond
the limit: otherwise many that are half here could wait for one another for ever. The next one may do so when that one
has been answered, not when it has arrived: answers may take long, and all who arrive one after the other would add up.
"""

from __future__ import annotations

from typing import Protocol


class Receiver(Protocol):
    def resume_reading(self) -> None: ...


class RequestMemory:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0
        # Requests of which a part is missing, the oldest first.
        self._incomplete: dict[Receiver, None] = {}
        # What each that waits wants, first come first.
        self._waiting: dict[Receiver, int] = {}
        # Whose request is beyond the limit.
        self._beyond: Receiver | None = None

    @property
    def is_short(self) -> bool:
        return self.held_bytes >= self._bytes_max

    def begin(self, receiver: Receiver, size: int) -> None:
        """The first bytes of a request, which are here already."""
        self._incomplete[receiver] = None
        self.held_bytes += size

    def take(self, receiver: Receiver, size: int) -> bool:
        """Whether there is room for more of the same request; if not, it is told when there may be some."""
        if self.held_bytes + size > self._bytes_max:
            if next(iter(self._incomplete)) is not receiver or self._beyond not in (None, receiver):
                self._waiting[receiver] = size
                return False
            self._beyond = receiver
        self.held_bytes += size
        return True

    def end(self, receiver: Receiver) -> None:
        """All of it is here, or nothing more will come."""
        was_oldest = next(iter(self._incomplete), None) is receiver
        self._incomplete.pop(receiver, None)
        self._waiting.pop(receiver, None)
        if was_oldest:
            self._wake()

    def release(self, receiver: Receiver, size: int) -> None:
        """Its request is answered, or nobody waits for that any more."""
        self.held_bytes -= size
        if receiver is self._beyond or not self.is_short:
            self._beyond = None
        self._wake()

    def _wake(self) -> None:
        """As many as there is room for, and the oldest. All of them have something to read: nobody sleeps on it."""
        oldest = next(iter(self._incomplete), None)
        if oldest is not None and self._waiting.pop(oldest, None) is not None:
            oldest.resume_reading()
        room = self._bytes_max - self.held_bytes
        while self._waiting:
            receiver, size = next(iter(self._waiting.items()))
            if size > room:
                return
            room -= size
            del self._waiting[receiver]
            receiver.resume_reading()
