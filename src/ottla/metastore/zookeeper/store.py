"""A MetadataStore in ZooKeeper; see `ottla.metastore.port` for what the methods promise.

Theory of operation: calls go to the current `Session` and succeed only within it. A keeper thread looks after it: it
arms the watches again after every reconnect, ends a session that may be over, tells everybody, waits until the server
has forgotten it, and only then begins the next one. Reads that lose their connection are
made again within the session; changes never.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import OPEN_ACL_UNSAFE

from ottla.common.errors import OttlaError
from ottla.metastore.port import (
    MULTI_BYTES_MAX,
    Check,
    Conflict,
    Create,
    Delete,
    Node,
    Operation,
    SessionListener,
    SessionState,
    Set,
    StoreConflict,
    StoreUnavailable,
    WatchCallback,
    check_operations,
    check_path,
    operation_bytes,
)
from ottla.metastore.zookeeper.callbacks import Callbacks
from ottla.metastore.zookeeper.connection import SessionKey
from ottla.metastore.zookeeper.options import ZookeeperOptions
from ottla.metastore.zookeeper.session import NOT_ALLOWED, ConnectionLost, Session

# Reads on their way at a time; kazoo's queue stands still beyond some 270.
_PIPELINE = 64
# Between attempts, where the server refuses a new session.
_PAUSE_S = 1.0
_REASONS: dict[type[Exception], Conflict] = {
    NodeExistsError: Conflict.NODE_EXISTS,
    NoNodeError: Conflict.NO_NODE,
    NoChildrenForEphemeralsError: Conflict.NO_NODE,
    BadVersionError: Conflict.BAD_VERSION,
    NotEmptyError: Conflict.NOT_EMPTY,
}
# ZooKeeper's own, beside ours where there is no chroot.
_RESERVED = "zookeeper"

log = logging.getLogger("ottla.metastore")


class ZookeeperStore:
    def __init__(self, options: ZookeeperOptions) -> None:
        self._options = options
        self._chroot = options.chroot
        self._is_closing = threading.Event()
        # What kazoo told of a session, for the keeper.
        self._states: queue.SimpleQueue[tuple[Session, SessionState]] = queue.SimpleQueue()
        self._callbacks = Callbacks()
        self._session: Session | None = None
        # The one that is ending or beginning, so that close can interrupt it.
        self._in_hand = self._new_session()
        try:
            self._begin()
        except BaseException:
            self._in_hand.end()
            self._callbacks.close()
            raise
        self._states.get()  # that it is connected
        self._keeper = threading.Thread(target=self._keep, name="metadata-session", daemon=True)
        self._keeper.start()

    def _new_session(self, resumed: SessionKey | None = None) -> Session:
        return Session(
            self._options, lambda session, state: self._states.put((session, state)), self._note_change, resumed
        )

    def _begin(self) -> None:
        """The first session. Raises OttlaError."""
        servers, timeout_ms = self._options.servers, self._options.connection_timeout_ms
        # A refusal may come before anybody notices that there was a connection, or after.
        if not self._in_hand.begin(timeout_ms / 1000) and not self._in_hand.is_login_refused:
            why = self._in_hand.why_unreachable
            raise OttlaError(
                f"cannot reach ZooKeeper at {servers} within {timeout_ms} ms"
                f"{f' ({why})' if why else ''}; is it running, and is zookeeper.connect right?"
            )
        try:
            self._make_chroot(self._in_hand)
        except StoreUnavailable as error:
            why = "it refuses the login" if self._in_hand.is_login_refused else str(error)
            raise OttlaError(f"cannot use ZooKeeper at {servers}{self._chroot}: {why}") from None
        self._session = self._in_hand

    def _make_chroot(self, session: Session) -> None:
        parts = self._chroot.split("/")[1:]
        for length in range(1, len(parts) + 1):
            path = "/" + "/".join(parts[:length])
            # Other clusters may have their own places beside ours.
            acl = None if path == self._chroot else OPEN_ACL_UNSAFE
            try:
                if session.result(session.client.exists_async(path)) is None:
                    session.result(session.client.create_async(path, acl=acl))
            except NodeExistsError:
                pass  # another broker was faster
        # Refused in any case, by the second operation, unless we may not write at all.
        probe = session.client.transaction()
        probe.create(self._full("/__ottla_probe"))
        probe.check(self._full("/__ottla_probe/missing"), 0)
        if isinstance(session.result(probe.commit_async())[0], NoAuthError):
            raise StoreUnavailable(NOT_ALLOWED)

    # --- reading

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        session = self._ready()
        found: list[Node | None] = []
        waiting: deque[tuple[str, Any]] = deque()
        for path in paths:
            if len(waiting) == _PIPELINE:
                found.append(self._node(session, *waiting.popleft()))
            waiting.append((path, session.client.get_async(self._full(path))))
        found += [self._node(session, *asked) for asked in waiting]
        return found

    def _node(self, session: Session, path: str, request: Any) -> Node | None:
        """`request` is the first attempt."""
        attempts = chain([request], (session.client.get_async(self._full(path)) for _ in repeat(None)))
        try:
            data, stat = self._read(session, partial(next, attempts))
        except NoNodeError:
            return None
        return Node(data, stat.version)

    def children(self, path: str) -> list[str]:
        check_path(path)
        session = self._ready()
        try:
            names = self._read(session, lambda: session.client.get_children_async(self._full(path)))
        except NoNodeError:
            return []
        return sorted(name for name in names if self._chroot or path != "/" or name != _RESERVED)

    def sync(self) -> None:
        session = self._ready()
        self._read(session, lambda: session.client.sync_async(self._full("/")))
        # ZooKeeper tells of changes before it answers.
        self._callbacks.all_told(self._options.connection_timeout_ms / 1000)

    @staticmethod
    def _read(session: Session, ask: Callable[[], Any]) -> Any:
        """What changes nothing may be asked again, within the session."""
        while True:
            try:
                return session.result(ask())
            except ConnectionLost:
                session.ready()

    def _ready(self) -> Session:
        session = self._session
        if session is None:
            state = "closed" if self._is_closing.is_set() else "without a session"
            raise StoreUnavailable(f"the metadata store in ZooKeeper at {self._options.servers} is {state}")
        session.ready()
        return session

    # --- changing

    def multi(self, operations: Sequence[Operation], *, urgent: bool = False) -> list[int]:
        check_operations(operations)
        taken = sum(map(operation_bytes, operations))
        if taken > MULTI_BYTES_MAX:
            raise ValueError(
                f"{len(operations)} operations of {taken} bytes are more than one multi may hold ({MULTI_BYTES_MAX})"
            )
        if not operations:
            return []
        session = self._ready()
        transaction = session.client.transaction()
        for operation in operations:
            path = self._full(operation.path)
            if isinstance(operation, Create):
                transaction.create(path, operation.data, ephemeral=operation.ephemeral)
            elif isinstance(operation, Set):
                transaction.set_data(path, operation.data, operation.version)
            elif isinstance(operation, Delete):
                transaction.delete(path, operation.version)
            else:
                transaction.check(path, operation.version)
        outcomes = session.result(transaction.commit_async())
        self._raise_refusal(operations, outcomes)
        return [self._version(operation, outcome) for operation, outcome in zip(operations, outcomes, strict=True)]

    def _raise_refusal(self, operations: Sequence[Operation], outcomes: Sequence[Any]) -> None:
        """One operation is to blame. Those before it say that they were rolled back, those after it that they were
        not looked at."""
        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, Exception) and not isinstance(outcome, (RolledBackError, RuntimeInconsistency)):
                reason = _REASONS.get(type(outcome))
                if reason is not None:
                    raise StoreConflict(reason, index, operations[index])
                raise StoreUnavailable(
                    f"ZooKeeper at {self._options.servers} refuses to change {operations[index].path}: "
                    f"{type(outcome).__name__}"
                )

    @staticmethod
    def _version(operation: Operation, outcome: Any) -> int:
        if isinstance(operation, Set):
            version: int = outcome.version
            return version
        if isinstance(operation, Create):
            return 0
        return operation.version if isinstance(operation, Check) else -1

    # --- being told

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        check_path(path)
        cancel = self._callbacks.add_watch(path, callback)
        session = self._session
        # Without a connection the keeper arms it, when there is one.
        if session is not None and session.is_connected:
            try:
                session.add_watch(self._full(path))
            except ConnectionLost:
                pass
            except StoreUnavailable:
                if not session.is_over:
                    cancel()
                    raise
        return cancel

    def on_session(self, listener: SessionListener) -> Callable[[], None]:
        return self._callbacks.add_listener(listener)

    def _note_change(self, path: str) -> None:
        if self._chroot and path != self._chroot:
            path = path.removeprefix(self._chroot)
        self._callbacks.changed(path if path != self._chroot else "/")

    def _full(self, path: str) -> str:
        return (self._chroot + path if path != "/" else self._chroot) or "/"

    # --- the keeper

    def _keep(self) -> None:
        while not self._is_closing.is_set():
            session = self._in_hand
            state = self._next_state(session)
            if self._is_closing.is_set():
                break
            if session.is_over:
                self._replace(session)
            elif state is SessionState.SUSPENDED:
                log.warning("the connection to ZooKeeper is gone", extra={"zookeeper": self._options.servers})
                self._callbacks.session(SessionState.SUSPENDED)
            elif state is SessionState.CONNECTED:
                self._welcome(session)
            else:
                session.look()
        self._in_hand.end()

    def _next_state(self, session: Session) -> SessionState | None:
        """Of this session; None if nothing happens for some time."""
        try:
            of, state = self._states.get(timeout=session.seconds_to_next_look)
        except queue.Empty:
            return None
        return state if of is session else None

    def _welcome(self, session: Session) -> None:
        """There is a connection: watches first, so that whoever reads after being told misses nothing."""
        try:
            for path in self._callbacks.watched():
                session.add_watch(self._full(path))
        except ConnectionLost:
            return  # kazoo says so next
        except StoreUnavailable as error:
            if session.is_over:
                return
            log.error("watches in ZooKeeper cannot be set again", extra={"error": str(error)})
        log.info("connected to ZooKeeper", extra={"zookeeper": self._options.servers})
        self._callbacks.session(SessionState.CONNECTED)
        self._callbacks.missed()

    def _replace(self, session: Session) -> None:
        log.warning("the session with ZooKeeper is over", extra={"zookeeper": self._options.servers})
        session.condemn()
        self._session = None
        told = self._callbacks.session(SessionState.LOST)
        while not (told.wait(0.1) or self._is_closing.is_set()):
            pass
        session.wait_for_server()
        session.end()
        self._end_at_server(session)
        while not self._is_closing.is_set():
            self._in_hand = session = self._new_session()
            if self._is_closing.is_set():
                break
            if session.begin():
                self._session = session
                break
            session.end()
            self._is_closing.wait(_PAUSE_S)

    def _end_at_server(self, session: Session) -> None:
        """Until the server has said that it does not have the session any more. A server that hung for a while may find
        requests of ours in any order: it closes the connection with our goodbye for that of an earlier attempt."""
        while (left := session.open_at_server) is not None and not self._is_closing.is_set():
            log.warning("ZooKeeper may not have heard that the session is over: it is told again")
            self._in_hand = session = self._new_session(left)
            if not self._is_closing.is_set():
                session.begin()
            session.condemn()
            session.end()
            if session.open_at_server is not None:
                self._is_closing.wait(_PAUSE_S)

    def close(self) -> None:
        self._is_closing.set()
        self._session = None
        self._in_hand.interrupt()
        self._states.put((self._in_hand, SessionState.LOST))
        if threading.current_thread() is not self._keeper:
            self._keeper.join()
        self._callbacks.close()
