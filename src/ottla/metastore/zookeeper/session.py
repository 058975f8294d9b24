"""One session with ZooKeeper, from its beginning to its end.

A session is a kazoo client that is thrown away with it. kazoo itself would go on with a new session and let what
waits happen there; here what was begun in a session ends with it, as unavailable, and ephemeral nodes that a straggler
may make go when the client is stopped.

The session is over when the server says so, or when its time-out has passed since the last request that was answered
left us: by then the server may have ended it, and kazoo, if it is cut off, would never know.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    UnimplementedError,
)
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from ottla.metastore.port import SessionState, StoreUnavailable
from ottla.metastore.zookeeper.connection import AddWatch, Connection, Handler, SessionKey, make_client
from ottla.metastore.zookeeper.options import ZookeeperOptions

# How long a server may take to acknowledge the end of a session before its connection is cut.
_GOODBYE_S = 3.0
# And then its thread; what is stuck for longer is left behind.
_LEAVE_S = 10.0
_BROKEN = (
    ConnectionLoss,
    ConnectionClosedError,
    SessionExpiredError,
    SessionMovedError,
    OperationTimeoutError,
    AuthFailedError,
)

NOT_ALLOWED = "ZooKeeper does not allow it: the nodes belong to another user, or the login is wrong"

log = logging.getLogger("ottla.metastore")


class ConnectionLost(StoreUnavailable):
    """The connection broke under the request; the session may live."""


class Session:
    def __init__(
        self,
        options: ZookeeperOptions,
        on_state: Callable[[Session, SessionState], None],
        on_change: Callable[[str], None],
        resumed: SessionKey | None = None,
    ) -> None:
        """`on_state` and `on_change` are called on kazoo's thread and must only take note. `resumed` is a session of
        before, to be ended."""
        self._options = options
        self._on_state = on_state
        # The server has ended it, or we have.
        self._is_ended = False
        # Set while there is a connection, and when there is no more sense in waiting for one.
        self._reached = threading.Event()
        timeout_s = options.session_timeout_ms / 1000
        servers = options.servers.count(",") + 1
        self.client = make_client(
            {
                "hosts": options.servers,
                "client_id": resumed,
                "handler": Handler(timeout_s / 3 / servers),
                "auth_data": [("digest", options.digest)] if options.digest else None,
                "default_acl": CREATOR_ALL_ACL if options.is_acl_set else OPEN_ACL_UNSAFE,
                "connection_retry": KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0),
                "use_ssl": options.is_tls,
                "certfile": options.identity,
                "keyfile": options.identity,
                # Without one OpenSSL would ask for it at the terminal.
                "keyfile_password": options.identity_password or "",
                "ca": options.trusted,
                "check_hostname": options.is_host_checked,
            },
            timeout_s,
            on_change,
        )
        self._connection: Connection = self.client._connection
        self.client.add_listener(self._note_state)

    def _note_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._connection.note_connected()
            self._reached.set()
            self._on_state(self, SessionState.CONNECTED)
        elif state == KazooState.SUSPENDED:
            self._reached.clear()
            self._on_state(self, SessionState.SUSPENDED)
        else:
            self._is_ended = True
            self._reached.set()
            self._on_state(self, SessionState.LOST)

    # --- life

    def begin(self, timeout_s: float | None = None) -> bool:
        """Whether there is a connection in time; None waits until there is one, or until `interrupt`."""
        self.client.start_async()
        self._reached.wait(timeout_s)
        return self.is_connected

    @property
    def is_connected(self) -> bool:
        return bool(self.client.connected) and not self._is_ended

    @property
    def is_login_refused(self) -> bool:
        return self._connection.is_login_refused

    @property
    def is_over(self) -> bool:
        return self._is_ended or self.seconds_left <= 0

    def condemn(self) -> None:
        """It is over, even if the server can be reached again and would go on with it."""
        self._is_ended = True

    @property
    def seconds_left(self) -> float:
        """Until nobody can be sure that the session lives, if the server keeps silent."""
        heard = self._connection.heard_of_us_at
        return threading.TIMEOUT_MAX if heard is None else heard + self._connection.timeout_s - time.monotonic()

    @property
    def seconds_to_next_look(self) -> float:
        """When the keeper should call `look` again, at the latest."""
        return max(0.0, min(self.seconds_left, self._connection.timeout_s / 6))

    def look(self) -> None:
        """A server that is silent for too long may have left another one time to take over the session."""
        if self.is_connected and self._connection.is_silent:
            log.warning("ZooKeeper has been silent for too long: trying to connect again")
            self._connection.cut()

    @property
    def why_unreachable(self) -> str:
        return self._connection.last_error

    def end(self) -> None:
        """Say goodbye to the server, so that ephemeral nodes go now. If it cannot be reached at once, they go later:
        `open_at_server` tells."""
        # One that the server has ended may be connecting to the next already.
        patience_s = _GOODBYE_S if self.client.connected or self._is_ended else 0.0
        stopping = threading.Thread(target=self._stop_client, name="metadata-goodbye", daemon=True)
        stopping.start()
        stopping.join(patience_s)
        # It may be in an attempt to connect, or ask for the address of a host.
        deadline = time.monotonic() + _LEAVE_S
        while stopping.is_alive() and time.monotonic() < deadline:
            self._connection.cut()
            stopping.join(0.1)

    @property
    def open_at_server(self) -> SessionKey | None:
        """After `end`: the session that the server has, unless its time is up, because it may not have heard of the
        end."""
        return self._connection.open_at_server

    def _stop_client(self) -> None:
        try:
            self.client.stop()
            self.client.close()
        except Exception as error:
            log.warning("a session with ZooKeeper could not be closed", extra={"error": str(error)})

    def wait_for_server(self) -> None:
        """Until the server can be told that the session is over, or has told us; or until `interrupt`."""
        self._reached.wait()

    def interrupt(self) -> None:
        """Nobody waits for a connection any more."""
        self._reached.set()

    # --- requests

    def add_watch(self, path: str) -> None:
        request = self.client.handler.async_result()
        self.client._call(AddWatch(path), request)
        self.result(request)

    def ready(self) -> None:
        """Wait while the connection is gone; StoreUnavailable when the session is over."""
        while not self.is_over:
            if self._reached.wait(self.seconds_left):
                break
        if self.is_over:
            raise self._over()

    def result(self, request: Any) -> Any:
        """The answer, if it came in this session. Raises ConnectionLost where the outcome is unknown, StoreUnavailable
        if there will be none, and kazoo's exceptions for what the server refused because of the data."""
        while not request.wait(max(0.0, self.seconds_left)):
            if self.is_over:
                raise self._over()
        if self.is_over:
            raise self._over()
        try:
            return request.get(block=False)
        except _BROKEN as error:
            raise ConnectionLost(f"the connection to ZooKeeper was lost ({type(error).__name__})") from error
        except NoAuthError as error:
            raise StoreUnavailable(NOT_ALLOWED) from error
        except UnimplementedError as error:
            raise StoreUnavailable(f"ZooKeeper at {self._options.servers} is older than 3.6") from error

    def _over(self) -> StoreUnavailable:
        return StoreUnavailable(f"the session with ZooKeeper at {self._options.servers} is over")
