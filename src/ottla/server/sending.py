"""How answers leave. One leaves at a time, but short ones that are made in one turn of the poller are held, and leave
at its end together with those of other connections.

An answer that its client does not take at once waits in the output queue, and who has asked for it is not read from.
"""

from __future__ import annotations

import contextlib
from collections import deque
from time import perf_counter
from typing import Protocol

from ottla.server.output_queue import OutputQueue, Part
from ottla.server.socket_events import SocketEvents
from ottla.server.transport import Transport


class Sender(Protocol):
    """Whose answers they are."""

    def on_blocked(self) -> None:
        """From now on it is the client's turn to read."""

    def on_unblocked(self, seconds: float | None) -> None:
        """All has left, after so long; None: it was not an answer that could not be written."""

    def close(self) -> None: ...


class Sending:
    __slots__ = ("_blocked_since", "_events", "_output", "_sender", "_transport", "held", "parts")

    def __init__(self, transport: Transport, events: SocketEvents, sender: Sender) -> None:
        self._transport = transport
        self._events = events
        self._sender = sender
        self._output = OutputQueue(transport)
        # What has not left yet, and what is not to leave before the poller's turn is over.
        self.parts: deque[Part] = self._output.parts
        self.held: list[bytes] = []
        # Since when an answer waits for its client to read it; 0 while none does.
        self._blocked_since = 0.0

    def send(self, answer: list[Part] | bytes | bytearray) -> None:
        """The queue is empty whenever this is called."""
        if self.held:
            self.parts.extend(self.held)
            self.held.clear()
        if isinstance(answer, list):
            self.parts.extend(answer)
        else:
            self.parts.append(answer)
        self.drain()

    def release_held(self) -> None:
        """The poller's turn is over."""
        held = self.held
        if not held:
            return
        answer = held[0] if len(held) == 1 else b"".join(held)
        held.clear()
        try:
            sent = self._transport.send(answer)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._sender.close()
            return
        if sent != len(answer):
            self.parts.append(memoryview(answer)[sent:])
            self.drain()

    def drain(self) -> None:
        try:
            self._output.drain()
        except OSError:
            self._sender.close()
            return
        is_writing = self._events.is_writing
        if self.parts and not is_writing:
            self._blocked_since = perf_counter()
            self._sender.on_blocked()
            self._events.write(True)
        elif is_writing and not self.parts:
            waited_s = perf_counter() - self._blocked_since if self._blocked_since else None
            self._blocked_since = 0.0
            self._events.write(False)
            self._sender.on_unblocked(waited_s)

    def end(self) -> None:
        """The connection closes: what was held is of the requests before the one that it closes for."""
        if self.held:
            with contextlib.suppress(OSError):
                self._transport.send(b"".join(self.held))
            self.held.clear()
        self.parts.clear()
        del self._sender  # they would hold one another, and nobody looks for such pairs often (`garbage.py`)
