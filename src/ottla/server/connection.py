"""One client connection on a raw non-blocking socket.

Theory of operation
- Requests are answered one at a time and in order, as Kafka does: while one is being worked on, the next stays in the
  socket (or in a small read-ahead buffer), and while an answer has not left, no new request is read. So a client that
  never reads its answers, or sends a byte a second, holds one request's memory and nothing else, and that only for
  `connections.max.idle.ms`.
- A frame that one read brings is handled where it lies, in a buffer that all connections share (`frames.py` has the
  rest). An answer is a list of byte strings and file slices (`output_queue.py`).

We are called by our own poller instead of using asyncio transports: several callbacks fewer per request, `recv_into`
our own buffers, and `sendfile` as a plain system call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ottla.broker.context import ANONYMOUS
from ottla.common.errors import CloseConnection
from ottla.server.frames import FRAME_BYTES_MIN, FrameReader, FrameRefused
from ottla.server.output_queue import OutputQueue, Part
from ottla.server.poller import HANG_UP, READ, WRITE
from ottla.server.transport import Transport

if TYPE_CHECKING:
    from ottla.broker.observing.request_stats import RequestStats
    from ottla.server.listener import Listener

log = logging.getLogger("ottla.server")

_SIZE = struct.Struct(">i")
_SIZED_FRAME_BYTES_MIN = FRAME_BYTES_MIN + _SIZE.size
_NOTHING = memoryview(b"")
# How a TLS handshake begins; taken for the size of a frame it would be 369 MB.
_TLS_HANDSHAKE = 0x1603
# A frame up to this size gets its whole buffer at once; a larger one must first send what it announced.
_FRAME_TRUST_BYTES = 2 * 1024 * 1024
# A frame grows by no more at a time: to make so many pages is what everybody else waits for.
_GROWTH_BYTES_MAX = 4 * 1024 * 1024
# What we read ahead of a request that is still being worked on, mostly to notice that the client has gone.
_READ_AHEAD_BYTES = 64 * 1024
# Longer answers than this leave at once, behind the ones that were held.
_HELD_BYTES_MAX = 16 * 1024
# Requests answered for one connection before others get their turn.
_REQUESTS_PER_TURN = 16


# Or a promise of one. A bare future waits for something to happen and is cancelled when the client goes (a parked
# fetch); a coroutine is work, and runs to its end. So whoever wants to see answers adds a callback and wraps nothing.
Answer = list[Part] | bytes | bytearray | None


class Connection:
    __slots__ = (
        "_blocked_since",
        "_busy",
        "_charged",
        "_closed",
        "_ending",
        "_frames",
        "_held",
        "_hung_up",
        "_is_last",
        "_loop",
        "_muted",
        "_out",
        "_output",
        "_read_scheduled",
        "_reading",
        "_task",
        "_transport",
        "_turn_scheduled",
        "_writing",
        "client_host",
        "context",
        "id",
        "is_known",
        "last_active_ms",
        "listener",
        "login",
        "observed",
        "on_answer",
        "poller",
        "principal",
        "request_bytes_max",
        "since_ms",
    )

    def __init__(self, listener: Listener, transport: Transport, client_host: str, connection_id: int) -> None:
        self.listener = listener
        self.client_host = client_host
        self.id = connection_id
        self.context: tuple[bytes | None, Any] | None = None  # the router keeps its request context here
        # Who the client is, and whether that is settled: TLS and a login take their time, but not for ever.
        self.principal = ANONYMOUS
        self.is_known = listener.is_open_to_all
        self.login: Any = None  # of a SASL listener: how far it is
        # Who observes requests keeps here what the last one is counted with.
        self.observed: RequestStats | None = None
        # Whoever has a say in the promised answer that is being made: quotas, and who observes requests.
        self.on_answer: Callable[[Answer], Answer] | None = None
        self.request_bytes_max = listener.first_request_bytes_max
        self.last_active_ms = self.since_ms = listener.clock.monotonic_ms()
        self._loop = listener.loop
        self._transport = transport
        self._frames = FrameReader(self.request_bytes_max)
        # What the request that is received, or worked on, counts for.
        self._charged = 0
        self._output = OutputQueue(transport)
        self._out = self._output.parts
        self._held: list[bytes] = []
        self._busy = False
        self._writing = False
        # Since when an answer waits for its client to read it; 0 while none does.
        self._blocked_since = 0.0
        self._closed = False
        self._ending = False
        self._hung_up = False
        # A client that has used too much: what it says next is heard later.
        self._muted = False
        # After the answer that is being made the connection ends.
        self._is_last = False
        self._turn_scheduled = False
        self._task: asyncio.Future[Answer] | None = None
        self._reading = True
        self._read_scheduled = False
        self.poller = listener.poller
        self.poller.watch(transport.fd, self, READ)

    @property
    def is_idle(self) -> bool:
        """Nothing asked and nothing to send."""
        return (not self._busy or self._muted) and not self._out and not self._held

    @property
    def is_busy(self) -> bool:
        """Something asked is being worked on: it is not the client's turn to do something."""
        return self._busy

    # --- reading

    def on_readable(self) -> None:
        try:
            if not self._reading:
                self._on_hang_up()
            elif self._frames.buffer is not None:
                self._read_into_frame()
            elif self._busy or self._out or self._frames.ahead:
                self._read_beyond()
            else:
                self._read_fresh()
        except (BlockingIOError, InterruptedError):
            if self._transport.wants_to_write and not self._writing:
                self._writing = True
                self._update_events()
            return
        except OSError as error:
            if not self.is_known:
                self.listener.note_failed_handshake(self, error)
            self._finish_and_close()
        except Exception:  # of this connection; those who are served in the same turn must not suffer for it
            log.exception("closing connection: it failed", extra={"client": self.client_host})
            self.close()
            return
        if self._transport.is_holding:
            self._schedule_read()

    def _schedule_read(self) -> None:
        """The transport has something that epoll does not know of."""
        if not self._closed and self._reading and not self._read_scheduled:
            self._read_scheduled = True
            self._loop.call_soon(self._read_what_is_held)

    def _read_what_is_held(self) -> None:
        self._read_scheduled = False
        if not self._closed and self._reading:
            self.on_readable()

    def _read_fresh(self) -> None:
        scratch = self.listener.scratch
        received = self._transport.receive_into(scratch)
        if received == 0:
            self.close()
            return
        self.last_active_ms = self.poller.now_ms
        if _SIZED_FRAME_BYTES_MIN <= received == _SIZE.unpack_from(scratch)[0] + 4 <= self.request_bytes_max:
            self._handle(scratch[4:received])  # one whole request: what most reads bring
        else:
            self._consume(scratch[:received])

    def _read_into_frame(self) -> None:
        frames, buffer = self._frames, self._frames.buffer
        assert buffer is not None
        if missing := frames.missing_room:
            growth = min(len(buffer), _GROWTH_BYTES_MAX, missing)
            if not self.listener.memory.take(self, growth):
                self._pause_reading()
                return
            self._charged += growth
            frames.grow(growth)
        received = self._transport.receive_into(frames.room)
        if received == 0:
            self.close()
            return
        self.last_active_ms = self.poller.now_ms
        frame = frames.received(received)
        if frame is not None:
            self._end_frame()
            self._handle(frame)
            if not self._busy:  # else the request may still be read where it is (framing.kept)
                self._release_memory()
                self.listener.recycle(buffer)

    def _read_beyond(self) -> None:
        """Data while a request is under way: keep a little, then let the socket hold the rest."""
        if len(self._frames.ahead) >= _READ_AHEAD_BYTES:
            self._pause_reading()
            return
        chunk = self._transport.receive(_READ_AHEAD_BYTES)
        if not chunk:
            self._finish_and_close()
            return
        self._frames.ahead += chunk
        if not self._busy and not self._out:
            self.last_active_ms = self.poller.now_ms
            self._take_turn()

    def _consume(self, data: memoryview) -> None:
        """Handle the complete frames in what was kept and `data`; keep what is left."""
        frames, handled = self._frames, 0
        frames.feed(data)
        try:
            while (frame := frames.next()) is not None:
                self._handle(frame)
                handled += 1
                if self._closed:
                    return
                if self._busy or self._out:
                    break
                if handled >= _REQUESTS_PER_TURN:
                    self._schedule_turn()
                    break
        except FrameRefused as refused:
            self._refuse_frame(refused.size)
            return
        if frames.incomplete is not None:
            frames.begin(self._frame_buffer(*frames.incomplete))
        else:
            frames.keep()

    def _frame_buffer(self, size: int, arrived: int) -> bytearray:
        memory = self.listener.memory
        # At least a byte: what has no room cannot be told from a client that has gone.
        trusted = arrived + 1 if memory.is_short else min(size, _FRAME_TRUST_BYTES)
        buffer = self.listener.frame_buffer(trusted, arrived)
        self._charged = len(buffer)
        memory.begin(self, self._charged)
        self.listener.receiving += 1
        return buffer

    def _end_frame(self) -> None:
        self.listener.receiving -= 1
        self.listener.memory.end(self)

    def _release_memory(self) -> None:
        if self._charged:
            charged, self._charged = self._charged, 0
            self.listener.memory.release(self, charged)

    def resume_reading(self) -> None:
        """There may be memory again for the rest of a request."""
        if not self._closed and self._frames.buffer is not None:
            self._read_on()

    def _refuse_frame(self, size: int) -> None:
        if size >> 16 == _TLS_HANDSHAKE:
            self.listener.note_tls_client(self.client_host)
        else:
            log.warning(
                "closing connection: frame size out of range",
                extra={"client": self.client_host, "frame_bytes": size, "limit_bytes": self.request_bytes_max},
            )
        self.close()

    def _schedule_turn(self) -> None:
        if not self._turn_scheduled:
            self._turn_scheduled = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Go on with what was read ahead."""
        self._turn_scheduled = False
        if self._closed or self._busy or self._out:
            return
        if self._frames.ahead:
            self._consume(_NOTHING)
        if self._closed:
            return
        if self._ending:
            if not self._busy and not self._out and not self._turn_scheduled:
                self.close()
        elif not self._reading and len(self._frames.ahead) < _READ_AHEAD_BYTES:
            self._read_on()

    def _read_on(self) -> None:
        self._reading = True
        self._update_events()
        if self._transport.is_holding:
            self._schedule_read()

    def _pause_reading(self) -> None:
        self._reading = False
        self._update_events()

    def _update_events(self) -> None:
        events = WRITE if self._writing else 0
        if self._reading:
            events |= READ
        elif not self._hung_up:
            events |= HANG_UP
        if events:
            self.poller.change(self._transport.fd, self, events)
        else:
            self.poller.forget(self._transport.fd)  # a broken connection is told again and again to whoever is watched

    def _on_hang_up(self) -> None:
        """The client has gone, or will say no more, while we do not read. Nobody waits for what waits."""
        self._hung_up = True
        self._update_events()
        self._give_up_waiting()

    def _finish_and_close(self) -> None:
        """The client will say no more. What it has asked for is done all the same: a producer with acks=0 sends and
        hangs up. Only what waits for something to happen is given up."""
        if not self._frames.ahead and not self._out:
            self.close()
            return
        self._ending = self._hung_up = True
        self._pause_reading()
        if self._busy:
            self._give_up_waiting()
        elif not self._out:
            self._schedule_turn()

    # --- handling

    def _handle(self, frame: memoryview) -> None:
        answer = self.listener.handle(self, frame)
        # Behind what has not left yet nothing is held: it would go past it.
        if type(answer) is bytes and self.poller.in_turn and len(answer) <= _HELD_BYTES_MAX and not self._out:
            if not self._held:
                self.poller.holding.append(self)
            self._held.append(answer)
            return
        if answer is None:
            return
        if isinstance(answer, (list, bytes, bytearray)):
            self._send(answer)
            return
        self._busy = True
        self._task = task = asyncio.ensure_future(answer)
        task.add_done_callback(self._on_promise_done)
        if self._hung_up:
            self._give_up_waiting()

    def _give_up_waiting(self) -> None:
        """A bare future is a request that waits, such as a parked fetch; a coroutine is work that was begun, such as
        a produce in the middle of recompression, and runs to its end."""
        if self._task is not None and not isinstance(self._task, asyncio.Task):
            self._task.cancel()

    def _on_promise_done(self, task: asyncio.Future[Answer]) -> None:
        self._busy = False
        self._task = None
        settle, self.on_answer = self.on_answer, None
        self._release_memory()
        if task.cancelled():
            if self._hung_up and not self._closed:
                self._after_answer()
            else:
                self.close()  # an answer left out would shift all that follow
            return
        error = task.exception()
        if self._closed:
            return
        if error is not None:
            unexpected = None if isinstance(error, CloseConnection) else error
            log.error("closing connection: %s", error, exc_info=unexpected, extra={"client": self.client_host})
            self.close()
            return
        answer = task.result()
        if settle is not None:
            answer = settle(answer)
        if answer is not None:
            self._send(answer)
        if not self._out and not self._muted:
            self._after_answer()

    def _after_answer(self) -> None:
        if self.listener.draining or self._is_last:
            self.close()
            return
        self.last_active_ms = self.listener.clock.monotonic_ms()
        if self._frames.ahead or not self._reading:
            self._schedule_turn()

    # --- clients that use more than they may (KIP-219)

    def mute(self) -> None:
        """Nothing more is heard of the client until `unmute`; what is answered leaves all the same."""
        if not self._closed:
            self._muted = self._busy = True
            self._release_memory()

    def unmute(self) -> None:
        if self._closed or not self._muted:
            return
        self._muted = self._busy = False
        if not self._out:
            self._after_answer()

    # --- writing

    def _send(self, answer: list[Part] | bytes | bytearray) -> None:
        """The output queue is empty whenever this is called: one answer leaves at a time. But short answers that are
        made in one turn of the poller are held, and leave at its end together with those of other connections."""
        if self._held:
            self._out.extend(self._held)
            self._held.clear()
        if isinstance(answer, list):
            self._out.extend(answer)
        else:
            self._out.append(answer)
        self._drain()

    def release_held(self) -> None:
        """The poller's turn is over."""
        held = self._held
        if not held:
            return
        answer = held[0] if len(held) == 1 else b"".join(held)
        held.clear()
        try:
            sent = self._transport.send(answer)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.close()
            return
        if sent != len(answer):
            self._out.append(memoryview(answer)[sent:])
            self._drain()

    def _drain(self) -> None:
        try:
            self._output.drain()
        except OSError:
            self.close()
            return
        if self._out:
            if not self._writing:
                self._writing = True
                self._blocked_since = perf_counter()
                self.last_active_ms = self.listener.clock.monotonic_ms()  # from now on it is the client's turn
                self._update_events()
        elif self._writing:
            self._writing = False
            if self._blocked_since:  # else a TLS handshake was to be written
                self.listener.on_sent(self, perf_counter() - self._blocked_since)
                self._blocked_since = 0.0
            self._update_events()
            if not self._busy:  # else what left was the end of the answers before the one that is worked on
                self._after_answer()

    def on_writable(self) -> None:
        if self._transport.wants_to_write:
            self._writing = False
            self._update_events()
            self.on_readable()  # the handshake goes on
            return
        self.last_active_ms = self.listener.clock.monotonic_ms()
        self._drain()

    # --- who it is

    def admit(self, principal: str) -> None:
        """The client is this one; from now on its requests may have the size that requests have."""
        self.principal = principal
        self.is_known = True
        self.request_bytes_max = self.listener.request_bytes_max
        self._frames.bytes_max = self.request_bytes_max
        self.context = None  # made for who it was before

    def end_with_answer(self) -> None:
        """The promised answer that is being made is the last one."""
        self._is_last = True

    # --- the end

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._held:
            with contextlib.suppress(OSError):
                self._transport.send(b"".join(self._held))  # the requests before the one that we close for
            self._held.clear()
        self.poller.forget(self._transport.fd)
        self._give_up_waiting()
        self._out.clear()
        if self._frames.buffer is not None:
            self._end_frame()
        if not self._busy:
            self._release_memory()
        self._frames.clear()
        self._transport.close()
        self.listener.forget(self)
