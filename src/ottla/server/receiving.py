"""One client connection on a raw non-blocking socket.

Theory of operation
- Requests are answered one at a time and in order, as Kafka does: while one is being worked on, the next stays in the
  socket (or in a small read-ahead buffer), and while an answer has not left, no new request is read. So a client that
  never reads its answers, or sends a byte a second, holds one request's memory and nothing else, and that only for
  `connections.max.idle.ms`.
- A frame that one read brings is handled where it lies, in a buffer that all connections share (`frames.py` has the
  rest). An answer is a list of byte strings and file slices (`output_queue.py`).
- Here is how requests are read. What becomes of one is in `connection.py`, who sends it in `client_end.py`, what it may
  take of the memory for requests in `frame_memory.py`.

We are called by our own poller instead of using asyncio transports: several callbacks fewer per request, `recv_into`
our own buffers, and `sendfile` as a plain system call.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING

from ottla.server.connection import Connection
from ottla.server.frames import FRAME_BYTES_MIN, FrameReader, FrameRefused
from ottla.server.transport import Transport

if TYPE_CHECKING:
    from ottla.server.listener import Listener

log = logging.getLogger("ottla.server")

_SIZE = struct.Struct(">i")
_SIZED_FRAME_BYTES_MIN = FRAME_BYTES_MIN + _SIZE.size
_NOTHING = memoryview(b"")
# What we read ahead of a request that is still being worked on, mostly to notice that the client has gone.
_READ_AHEAD_BYTES = 64 * 1024
# Requests answered for one connection before others get their turn.
_REQUESTS_PER_TURN = 16


class ReceivingConnection(Connection):
    __slots__ = ("_ending", "_frames", "_loop", "_read_scheduled", "_turn_scheduled")

    def __init__(self, listener: Listener, transport: Transport, client_host: str, connection_id: int) -> None:
        super().__init__(listener, transport, client_host, connection_id)
        self._loop = listener.loop
        self._frames = FrameReader(self.request_bytes_max)
        # The client will say no more.
        self._ending = False
        self._turn_scheduled = False
        self._read_scheduled = False

    # --- reading

    def on_readable(self) -> None:
        try:
            if not self._events.is_reading:
                self._on_hang_up()
            elif self._frames.buffer is not None:
                self._read_into_frame()
            elif self._busy or self._out or self._frames.ahead:
                self._read_beyond()
            else:
                self._read_fresh()
        except (BlockingIOError, InterruptedError):
            if self._transport.wants_to_write and not self._events.is_writing:
                self._events.write(True)
            return
        except OSError as error:
            if not self.is_known:
                self.listener.note_failed_handshake(self, error)
            self._finish_and_close()
        except Exception:
            self._fail()
            return
        if self._transport.is_holding:
            self._schedule_read()

    def _fail(self) -> None:
        """An exception of this connection: those who are served in the same turn must not suffer for it."""
        log.exception("closing connection: it failed", extra={"client": self.client_host})
        self.close()

    def _schedule_read(self) -> None:
        """The transport has something that epoll does not know of."""
        if not self._closed and self._events.is_reading and not self._read_scheduled:
            self._read_scheduled = True
            self._loop.call_soon(self._read_what_is_held)

    def _read_what_is_held(self) -> None:
        self._read_scheduled = False
        if not self._closed and self._events.is_reading:
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
        frames = self._frames
        if not self._memory.grow(self, frames):
            self._events.pause_reading()
            return
        buffer = frames.buffer
        assert buffer is not None
        received = self._transport.receive_into(frames.room)
        if received == 0:
            self.close()
            return
        self.last_active_ms = self.poller.now_ms
        frame = frames.received(received)
        if frame is not None:
            self._memory.end_frame(self, buffer)
            self._handle(frame)
            if not self._busy:  # else the request may still be read where it is (framing.kept)
                self._memory.release(self)
                if isinstance(buffer, bytearray):
                    self.listener.recycle(buffer)

    def _read_beyond(self) -> None:
        """Data while a request is under way: keep a little, then let the socket hold the rest."""
        if len(self._frames.ahead) >= _READ_AHEAD_BYTES:
            self._events.pause_reading()
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
            self.listener.note_refused_frame(self, refused.size)
            self.close()
            return
        if frames.incomplete is not None:
            frames.begin(self._memory.begin(self, *frames.incomplete))
        else:
            frames.keep()

    def resume_reading(self) -> None:
        """There may be memory again for the rest of a request."""
        if not self._closed and self._frames.buffer is not None:
            self._read_on()

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
        elif not self._events.is_reading and len(self._frames.ahead) < _READ_AHEAD_BYTES:
            self._read_on()

    def _read_on(self) -> None:
        self._events.read()
        if self._transport.is_holding:
            self._schedule_read()

    def _on_hang_up(self) -> None:
        """The client has gone, or will say no more, while we do not read. Nobody waits for what waits."""
        self._events.hang_up()
        self._promised.give_up()

    def _finish_and_close(self) -> None:
        """The client will say no more. What it has asked for is done all the same: a producer with acks=0 sends and
        hangs up. Only what waits for something to happen is given up."""
        if not self._frames.ahead and not self._out:
            self.close()
            return
        self._ending = self._events.has_hung_up = True
        self._events.pause_reading()
        if self._busy:
            self._promised.give_up()
        elif not self._out:
            self._schedule_turn()

    # --- what comes of answers

    def _go_on(self) -> None:
        if self._frames.ahead or not self._events.is_reading:
            self._schedule_turn()

    def on_writable(self) -> None:
        if self._transport.wants_to_write:
            self._events.write(False)
            self.on_readable()  # the handshake goes on
            return
        self.last_active_ms = self.listener.clock.monotonic_ms()
        try:
            self._sending.drain()
        except Exception:
            self._fail()

    def admit(self, principal: str) -> None:
        super().admit(principal)
        self._frames.bytes_min, self._frames.bytes_max = FRAME_BYTES_MIN, self.request_bytes_max

    def take_short_frames(self) -> None:
        self._frames.bytes_min = 0

    def _give_up_receiving(self) -> None:
        if self._frames.buffer is not None:
            self._memory.end_frame(self, self._frames.buffer)
        self._frames.clear()
