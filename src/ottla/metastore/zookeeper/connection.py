"""kazoo's connection to a server, with what kazoo (2.11) does not have.

- Persistent recursive watches (ZooKeeper 3.6): a request to set one, and events that stay for many changes. kazoo
  forgets a watch when its first event comes.
- How long the session is safe: an answer proves that the server had heard of us when the request left. kazoo learns
  that a session is over from the server alone, which is no help to one that is cut off from it.
- A limit for how long an attempt to connect may take: kazoo waits for a whole session, on one server of many.
- Which session the server may still know: kazoo does not say whether its goodbye was heard.
- With TLS, answers that came together: kazoo would leave those after the first in OpenSSL's buffer, where no select
  sees them, until something else arrives.

These are overrides of methods that kazoo keeps to itself, hence the narrow range of versions in pyproject.toml.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, SessionExpiredError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import CLOSE_RESPONSE, ConnectionHandler
from kazoo.protocol.serialization import Watch, int_struct, write_string

# The share of a session's time-out after which a silent server is given up; the rest is for finding another one.
_SILENCE_MAX = 2 / 3
_CONNECT_S_MIN = 0.5
_CREATED, _DELETED, _CHANGED = 1, 2, 3
_PERSISTENT_RECURSIVE = 1

# Who has both can go on with a session, or end it.
SessionKey = tuple[int, bytes]
Ready = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]

# It warns of every attempt to connect; what matters of that is logged by the store.
_kazoo_log = logging.getLogger("ottla.metastore.kazoo")
_kazoo_log.setLevel(logging.ERROR)


class AddWatch(NamedTuple):
    """The request of addWatch, in the form that kazoo has for requests."""

    path: str

    @property
    def type(self) -> int:
        return 106

    def serialize(self) -> bytes:
        data: bytes = write_string(self.path) + int_struct.pack(_PERSISTENT_RECURSIVE)
        return data

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> bool:
        return True


class Handler(SequentialThreadingHandler):  # type: ignore[misc]
    def __init__(self, connect_timeout_s: float) -> None:
        super().__init__()
        self.connect_timeout_s = max(connect_timeout_s, _CONNECT_S_MIN)

    def create_connection(self, *args: Any, **options: Any) -> socket.socket:
        options["timeout"] = self.connect_timeout_s
        connection: socket.socket = super().create_connection(*args, **options)
        return connection

    def select(self, read: Sequence[Any], write: Sequence[Any], error: Sequence[Any], timeout: float | None) -> Ready:
        buffered = [found for found in read if isinstance(found, ssl.SSLSocket) and found.pending()]
        readable, writable, broken = super().select(read, write, error, 0 if buffered else timeout)
        return [*readable, *(found for found in buffered if found not in readable)], writable, broken


class Connection(ConnectionHandler):  # type: ignore[misc]
    def __init__(self, client: KazooClient, timeout_s: float, on_change: Callable[[str], None]) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=_kazoo_log)
        self._on_change = on_change
        self._sent_at: dict[int, float] = {}
        self._connect_began = 0.0
        # Of the session; the server may choose another one.
        self.timeout_s = timeout_s
        # When a request left that was answered; None before the first.
        self.heard_of_us_at: float | None = None
        # Why connecting failed, for people.
        self.last_error = ""
        self.is_login_refused = False
        # The session that the server may have now, by its id and its password.
        self.open_at_server: SessionKey | None = self._session_key

    @property
    def _session_key(self) -> SessionKey | None:
        """Of the session that kazoo asks for, also without a connection."""
        session = self.client._session_id
        return (session, self.client._session_passwd) if session else None

    def note_connected(self) -> None:
        """The server has answered the request that (re)opens the session."""
        self.heard_of_us_at = self._connect_began

    @property
    def is_silent(self) -> bool:
        """Whether it is time to look for another server."""
        heard = self.heard_of_us_at
        return heard is not None and time.monotonic() - heard > self.timeout_s * _SILENCE_MAX

    def cut(self) -> None:
        """kazoo notices, and connects again."""
        with contextlib.suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)

    # --- overrides

    def _connect(self, host: str, address: str, port: int) -> tuple[float, float]:
        self._sent_at.clear()
        self._connect_began = time.monotonic()
        try:
            read_timeout_ms, connect_timeout_ms = super()._connect(host, address, port)
        except Exception as error:
            self.is_login_refused = isinstance(error, AuthFailedError)
            self.open_at_server = None if isinstance(error, SessionExpiredError) else self._session_key
            self.last_error = str(error).removeprefix("socket connection error: ") or type(error).__name__
            raise
        self.open_at_server = self._session_key
        # kazoo reads for two thirds of the session.
        self.timeout_s = read_timeout_ms * 1.5 / 1000
        return read_timeout_ms, connect_timeout_ms

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        """What opens a session, and logins: a server that hangs must leave time for the next one."""
        return super()._invoke(min(timeout, self.handler.connect_timeout_s), request, xid)

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:
        if xid:
            self._sent_at[xid] = time.monotonic()
        super()._submit(request, timeout, xid)

    def _read_header(self, timeout: float) -> tuple[Any, bytes, int]:
        header, buffer, offset = super()._read_header(timeout)
        sent_at = self._sent_at.pop(header.xid, None)
        if sent_at is not None and self.heard_of_us_at is not None:
            self.heard_of_us_at = max(self.heard_of_us_at, sent_at)
        return header, buffer, offset

    def _read_response(self, header: Any, buffer: bytes, offset: int) -> Any:
        response = super()._read_response(header, buffer, offset)
        if response is CLOSE_RESPONSE and not header.err:
            self.open_at_server = None
        return response

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        event, _ = Watch.deserialize(buffer, offset)
        if event.type in (_CREATED, _DELETED, _CHANGED):
            self._on_change(event.path)


def make_client(options: dict[str, Any], timeout_s: float, on_change: Callable[[str], None]) -> KazooClient:
    """A client whose connection is ours; it is not started."""
    client = KazooClient(timeout=timeout_s, logger=_kazoo_log, **options)
    client._connection = Connection(client, timeout_s, on_change)
    return client
