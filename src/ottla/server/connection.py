"""What becomes of a request: answered at once, or promised an answer; and when the next one may be read.

Requests of a connection are answered one at a time and in order. While one is being worked on, while its answer has not
left, or while its client has to wait for its quota, there is no next one. `receiving.py` has how requests are read.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.common.errors import CloseConnection
from ottla.server.client_end import Answer, ClientEnd
from ottla.server.frame_memory import FrameMemory
from ottla.server.promised_answer import PromisedAnswer
from ottla.server.sending import Sending
from ottla.server.socket_events import SocketEvents
from ottla.server.transport import Transport

if TYPE_CHECKING:
    from ottla.server.listener import Listener

log = logging.getLogger("ottla.server")

# Longer answers than this leave at once, behind the ones that were held.
_HELD_BYTES_MAX = 16 * 1024


class Connection(ClientEnd, ABC):
    __slots__ = (
        "_busy",
        "_closed",
        "_events",
        "_held",
        "_is_last",
        "_memory",
        "_muted",
        "_out",
        "_promised",
        "_sending",
        "_transport",
    )

    def __init__(self, listener: Listener, transport: Transport, client_host: str, connection_id: int) -> None:
        super().__init__(listener, client_host, connection_id)
        self._transport = transport
        self._memory = FrameMemory(listener)
        self._promised = PromisedAnswer()
        self._events = SocketEvents(self.poller, transport.fd, self)
        self._sending = Sending(transport, self._events, self)
        # Its two queues, looked at with every request.
        self._out, self._held = self._sending.parts, self._sending.held
        # A request is being worked on, or the client has to wait.
        self._busy = False
        # A client that has used too much: what it says next is heard later.
        self._muted = False
        # After the answer that is being made the connection ends.
        self._is_last = False
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Nothing asked and nothing to send."""
        return (not self._busy or self._muted) and not self._out and not self._held

    @property
    def is_busy(self) -> bool:
        """Something asked is being worked on: it is not the client's turn to do something."""
        return self._busy

    # --- what whoever reads has to say

    @abstractmethod
    def on_readable(self) -> None: ...

    @abstractmethod
    def on_writable(self) -> None: ...

    @abstractmethod
    def resume_reading(self) -> None: ...

    @abstractmethod
    def _go_on(self) -> None:
        """The next request may be read."""

    @abstractmethod
    def take_short_frames(self) -> None:
        """What comes is not made of requests, until the client is admitted."""

    @abstractmethod
    def _give_up_receiving(self) -> None:
        """The connection closes: nobody wants the rest of a request."""

    # --- a request, and the answer to it

    def _handle(self, frame: memoryview) -> None:
        answer = self.listener.handle(self, frame)
        # Behind what has not left yet nothing is held: it would go past it.
        if type(answer) is bytes and self.poller.in_turn and len(answer) <= _HELD_BYTES_MAX and not self._out:
            if not self._held:
                self.poller.holding.append(self._sending)
            self._held.append(answer)
            return
        if answer is None:
            return
        if isinstance(answer, (list, bytes, bytearray)):
            self._sending.send(answer)
            return
        self._busy = True
        self._promised.wait_for(answer, self)
        if self._events.has_hung_up:
            self._promised.give_up()

    def on_answered(self, answer: Answer) -> None:
        settle = self._end_request()
        if self._closed:
            return
        if settle is not None:
            answer = settle(answer)
        if answer is not None:
            self._sending.send(answer)
        if not self._out and not self._muted:
            self._after_answer()

    def on_given_up(self) -> None:
        self._end_request()
        if self._events.has_hung_up and not self._closed:
            self._after_answer()
        else:
            self.close()  # an answer left out would shift all that follow

    def on_failed(self, error: BaseException) -> None:
        self._end_request()
        if self._closed:
            return
        unexpected = None if isinstance(error, CloseConnection) else error
        log.error("closing connection: %s", error, exc_info=unexpected, extra={"client": self.client_host})
        self.close()

    def _end_request(self) -> Callable[[Answer], Answer] | None:
        """What was promised has come to something; who has a say in it."""
        self._busy = False
        self._memory.release(self)
        settle, self.on_answer = self.on_answer, None
        return settle

    def end_with_answer(self) -> None:
        """The promised answer that is being made is the last one."""
        self._is_last = True

    def _after_answer(self) -> None:
        if self.listener.draining or self._is_last:
            self.close()
            return
        self.last_active_ms = self.listener.clock.monotonic_ms()
        self._go_on()

    # --- clients that use more than they may (KIP-219)

    def mute(self) -> None:
        """Nothing more is heard of the client until `unmute`; what is answered leaves all the same."""
        if not self._closed:
            self._muted = self._busy = True
            self._memory.release(self)

    def unmute(self) -> None:
        if self._closed or not self._muted:
            return
        self._muted = self._busy = False
        if not self._out:
            self._after_answer()

    # --- writing

    def on_blocked(self) -> None:
        self.last_active_ms = self.listener.clock.monotonic_ms()  # from now on it is the client's turn

    def on_unblocked(self, seconds: float | None) -> None:
        if seconds is not None:  # else a TLS handshake was to be written
            self.listener.on_sent(self, seconds)
        if not self._busy:  # else what left was the end of the answers before the one that is worked on
            self._after_answer()

    # --- the end

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._sending.end()
        self._events.end()
        self._promised.give_up()
        self._give_up_receiving()
        if not self._busy:
            self._memory.release(self)
        self._transport.close()
        self.listener.forget(self)
