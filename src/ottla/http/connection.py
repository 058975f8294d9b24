"""A connection of a client, and what it may cost before a request is known.

uvicorn reads a request's head however long it is, and waits for the rest of it however long that takes. Here a head
has a size and a time; whoever exceeds them is answered (431, 408), and the connection is closed. A client that is
still sending would lose the answer if that were done at once, so what it sends is thrown away for a moment.

Nor is there an end to how many may wait so: beyond a number the one that has been waited for longest is closed, so that
who opens thousands and says nothing keeps nobody out.

Nor does uvicorn ever give up a client that does not read its answer: whoever makes it would wait for ever, and keep
what that takes. Here an answer that stands still for a while is thrown away with its connection.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import ssl
import termios
from array import array
from collections.abc import Callable

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ottla.security.distinguished_name import subject_of

HEADER_BYTES_MAX = 64 * 1024
HEAD_S_MAX = 30.0
# Of an answer nothing has left for so long.
SEND_S_MAX = 60.0
_LINGER_S = 2.0
_MANY = 10_000
# Half of what may be open: the rest is for what the process does itself.
_OPEN_MAX = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
CONNECTIONS_MAX = min(_MANY, _OPEN_MAX // 2) if _OPEN_MAX > 0 else _MANY
_PHRASES = {408: "Request Timeout", 431: "Request Header Fields Too Large"}

# Status and sentence -> the answer in the form that the clients of an API expect.
Refusal = Callable[[int, str], Response]


def connection_class(refusal: Refusal) -> type[Connection]:
    """uvicorn makes connections from a class, so what is theirs to know is in one."""
    return type("Connection", (Connection,), {"refusal": staticmethod(refusal), "waited_for": {}})


class Connection(HttpToolsProtocol):
    refusal: Refusal
    # Those of all clients whose request is not there as a whole, the longest first.
    waited_for: dict[Connection, None]
    # From the connection, or the first byte of a request, until its head is complete.
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_refused = False
    # While there is something that the client has not taken: when to look again, and how much it was.
    _look_again: asyncio.TimerHandle | None = None
    _unsent_bytes = 0
    # The subject of the client's certificate.
    _client_name: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # So we are told of everything that a client does not take, also of the last of it.
        # Not 0: with TLS asyncio takes an empty buffer for a full one then, and never says that it is empty.
        transport.set_write_buffer_limits(high=1, low=0)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        shown = None if tls is None else tls.getpeercert(binary_form=True)
        self._client_name = None if shown is None else subject_of(shown)
        if len(self.connections) > CONNECTIONS_MAX and self.waited_for:
            longest = next(iter(self.waited_for))
            del self.waited_for[longest]
            longest.transport.abort()
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._end_watch()
        self.waited_for.pop(self, None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_sending()

    def resume_writing(self) -> None:
        self._end_watch()
        super().resume_writing()

    def _watch_sending(self) -> None:
        self._unsent_bytes = self._unsent()
        self._look_again = asyncio.get_running_loop().call_later(SEND_S_MAX, self._look_at_sending)

    def _look_at_sending(self) -> None:
        if self._unsent() < self._unsent_bytes:
            self._watch_sending()
        else:
            self.transport.abort()

    def _unsent(self) -> int:
        """With what the system has of it: of a slow client it takes megabytes, and asks for more only now and then."""
        held = array("i", [0])
        try:
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, held)
        except OSError:
            pass  # a system that does not tell, or a connection that is gone
        return self.transport.get_write_buffer_size() + held[0]

    def _end_watch(self) -> None:
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        # Whatever was received is part of the head as long as that is not complete.
        if self._deadline is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEADER_BYTES_MAX:
                self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._client_name is not None:
            # As ASGI's extension for TLS has it.
            self.scope["extensions"] = {"tls": {"client_cert_name": self._client_name}}
        self._begin()

    def on_headers_complete(self) -> None:
        self._end()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.waited_for.pop(self, None)
        super().on_message_complete()

    def _begin(self) -> None:
        self.waited_for.setdefault(self)
        if self._deadline is None:
            self._head_bytes = 0
            self._deadline = asyncio.get_running_loop().call_later(HEAD_S_MAX, self._refuse, 408)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int) -> None:
        self._end()
        self._is_refused = True
        phrase = _PHRASES[status]
        reply = self.refusal(status, f"HTTP {status} {phrase}")
        lines = [f"HTTP/1.1 {status} {phrase}", "connection: close"]
        lines += [f"{name.decode()}: {value.decode()}" for name, value in reply.raw_headers]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + bytes(reply.body))
        # Only who sends too much is sending.
        asyncio.get_running_loop().call_later(_LINGER_S if status == 431 else 0, self.transport.close)
