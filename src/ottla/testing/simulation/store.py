"""A broker's client of the simulated ensemble: the store port, with all that can happen to a session.

Each call takes time to get there and time to come back, and either may never arrive. Reads come from a server that may
lag behind what this client has not heard of yet. Watches and session states are told by a thread of their own, in
order. A client notices by itself that its session must be over, as ours of ZooKeeper does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from ottla.metastore.port import (
    Node,
    Operation,
    SessionListener,
    SessionState,
    StoreUnavailable,
    WatchCallback,
    check_operations,
    check_path,
    is_at_or_below,
)
from ottla.testing.simulation.ensemble import Ensemble, Tree, names_below
from ottla.testing.simulation.loop import Process

T = TypeVar("T")

_TICKS_PER_TIMEOUT = 12
_SILENCE_MAX = 2 / 3
_STALE_READS = 0.3


class _ConnectionLost(StoreUnavailable):
    """The session may live."""


class SimulatedStore:
    def __init__(
        self,
        ensemble: Ensemble,
        process: Process,
        rng: Random,
        *,
        timeout_s: float,
        is_linked: Callable[[], bool],
        delay_s: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        """`is_linked`: whether the network lets this client through to the servers. Raises StoreUnavailable."""
        self._ensemble, self._process, self._rng = ensemble, process, rng
        self._loop, self._threads = process.loop, process.loop.threads
        self._timeout_s, self._is_linked, self._delay_s, self._say = timeout_s, is_linked, delay_s, say
        if not self._is_reachable:
            raise StoreUnavailable("the store cannot be reached")
        self._session = ensemble.begin(timeout_s)
        self._state = SessionState.CONNECTED
        # When a request left that was answered.
        self._heard_of_us_at = self._loop.time()
        # Up to where what this client has read or was told goes.
        self._seen = ensemble.changes
        self._watches: dict[int, tuple[str, WatchCallback]] = {}
        self._listeners: dict[int, SessionListener] = {}
        self._next_key = 0
        # What the thread of callbacks has to do.
        self._tasks: deque[Callable[[], None]] = deque()
        self._is_telling = False
        self._last_event_at = 0.0
        # Calls that wait until the network is whole, or the state changes.
        self._stalled: list[Callable[[], None]] = []
        self._is_closed = False
        ensemble.on_change.append(self._on_change)
        self._tick_later()

    @property
    def _is_reachable(self) -> bool:
        return self._ensemble.is_up and self._is_linked()

    # --- the session

    def _tick_later(self) -> None:
        if not self._is_closed:
            self._process.call_later(self._timeout_s / _TICKS_PER_TIMEOUT, self._tick)

    def _tick(self) -> None:
        if self._is_closed:
            return
        silent_s = self._loop.time() - self._heard_of_us_at
        if self._state is SessionState.LOST:
            self._begin_anew()
        elif self._is_reachable:
            if self._session.is_over:
                self._become(SessionState.LOST)
            else:
                self._heard()
                if self._state is SessionState.SUSPENDED:
                    self._become(SessionState.CONNECTED)
                    self._tasks.append(self._tell_all_watches)
                else:
                    self._release()  # what was on its way arrives after all
        elif silent_s >= self._timeout_s:
            self._become(SessionState.LOST)
        elif silent_s >= self._timeout_s * _SILENCE_MAX and self._state is SessionState.CONNECTED:
            self._become(SessionState.SUSPENDED)
        self._tick_later()

    def _heard(self) -> None:
        self._heard_of_us_at = self._loop.time()
        self._ensemble.heard_of(self._session)

    def _begin_anew(self) -> None:
        if self._is_telling or self._tasks or not self._is_reachable:
            return
        self._ensemble.end(self._session)
        self._session = self._ensemble.begin(self._timeout_s)
        self._heard()
        self._become(SessionState.CONNECTED)
        self._tasks.append(self._tell_all_watches)

    def _become(self, state: SessionState) -> None:
        if state is self._state:
            return
        self._say(f"session {state.value}")
        self._state = state
        if state is SessionState.CONNECTED:
            self._catch_up()  # watches are set at a server, and later reads are of no older state
        self._tasks.append(partial(self._tell_listeners, state))
        self._tell_later()
        self._release()

    def _release(self) -> None:
        stalled, self._stalled = self._stalled, []
        for go_on in stalled:
            self._process.call_soon(go_on)

    # --- calls

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        return self._read(lambda: [self._node(path) for path in paths])

    def children(self, path: str) -> list[str]:
        check_path(path)
        return self._read(lambda: sorted(names_below(self._tree(), path)))

    def multi(self, operations: Sequence[Operation], *, urgent: bool = False) -> list[int]:
        check_operations(operations)
        return self._call(lambda: self._write(operations))

    def sync(self) -> None:
        self._read(self._catch_up)

    def _node(self, path: str) -> Node | None:
        node = self._tree().get(path)
        return None if node is None else Node(node.data, node.version)

    def _tree(self) -> Tree:
        """As it is at a server that lags behind: of several reads each may see a later state than the one before."""
        number = self._ensemble.changes
        if self._threads.is_in_thread and self._rng.random() < _STALE_READS:
            number = self._rng.randint(self._seen, number)
        self._seen, tree = self._ensemble.as_of(number)
        return tree

    def _read(self, effect: Callable[[], T]) -> T:
        """What changes nothing is asked again while the session lives."""
        while True:
            try:
                return self._call(effect)
            except _ConnectionLost:
                # Nothing else happens meanwhile: it would wait for ever for what a real one waits for until its session
                # is over.
                if not self._threads.is_in_thread:
                    raise

    def _catch_up(self) -> None:
        self._seen = self._ensemble.changes

    def _write(self, operations: Sequence[Operation]) -> list[int]:
        versions = self._ensemble.apply(operations, self._session)
        self._catch_up()
        return versions

    def _call(self, effect: Callable[[], T]) -> T:
        self._await_connection()
        session = self._session
        self._travel()
        self._check_under_way(session)
        error: Exception | None = None
        try:
            result = effect()
        except Exception as raised:  # refused; that has to travel, too
            error = raised
        self._travel()
        self._check_under_way(session)
        self._heard()
        if error is not None:
            raise error
        return result

    def _await_connection(self) -> None:
        while self._state is SessionState.SUSPENDED and self._threads.is_in_thread:
            self._threads.wait(self._stalled.append)
        if self._state is not SessionState.CONNECTED or self._is_closed:
            raise StoreUnavailable(f"the session with the store is {self._state.value}")

    def _check_under_way(self, session: object) -> None:
        """The request, or its answer, is through. Else it is lost with its connection."""
        while not self._is_reachable and self._state is SessionState.CONNECTED and self._threads.is_in_thread:
            self._threads.wait(self._stalled.append)
        if self._session is not session or self._state is not SessionState.CONNECTED or not self._is_reachable:
            raise _ConnectionLost("the connection to the store was lost")
        if self._session.is_over:
            self._become(SessionState.LOST)
            raise StoreUnavailable("the session with the store is over")

    def _travel(self) -> None:
        if self._threads.is_in_thread:
            delay_s = self._delay_s()

            def arrive_later(go_on: Callable[[], None]) -> None:
                self._process.call_later(delay_s, go_on)

            self._threads.wait(arrive_later)

    # --- what is told

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        check_path(path)
        key = self._new_key()
        self._watches[key] = (path, callback)
        self._catch_up()
        return lambda: self._watches.pop(key, None) and None

    def on_session(self, listener: SessionListener) -> Callable[[], None]:
        key = self._new_key()
        self._listeners[key] = listener
        if self._state is not SessionState.CONNECTED:
            self._tasks.append(partial(listener, self._state))
            self._tell_later()
        return lambda: self._listeners.pop(key, None) and None

    def _new_key(self) -> int:
        self._next_key += 1
        return self._next_key

    def _on_change(self, number: int, paths: list[str]) -> None:
        """Runs in the name of whoever made the change. Without a connection nothing is told but that all may have
        changed, later."""
        if self._is_closed or self._process.is_dead or self._state is not SessionState.CONNECTED:
            return
        if any(is_at_or_below(path, watched) for path in paths for watched, _ in self._watches.values()):
            self._last_event_at = max(self._last_event_at, self._loop.time() + self._delay_s())
            self._process.call_at(self._last_event_at, self._hear_of, number, paths)

    def _hear_of(self, number: int, paths: list[str]) -> None:
        if self._state is not SessionState.CONNECTED:
            return
        if not self._is_reachable:
            # It comes when the network does, or is among what may have changed when there is a new connection.
            self._process.call_later(self._timeout_s / _TICKS_PER_TIMEOUT, self._hear_of, number, paths)
            return
        self._seen = max(self._seen, number)
        for path in paths:
            self._tasks.append(partial(self._tell_watches, path))
        self._tell_later()

    def _tell_later(self) -> None:
        if not self._is_telling and self._tasks:
            self._is_telling = True
            self._process.call_soon(self._threads.start, self._tell)

    def _tell(self) -> None:
        while self._tasks:
            self._tasks.popleft()()
        self._is_telling = False

    def _tell_watches(self, changed: str) -> None:
        for key, (path, callback) in list(self._watches.items()):
            if is_at_or_below(changed, path) and key in self._watches:
                callback(changed)

    def _tell_all_watches(self) -> None:
        for key, (path, callback) in list(self._watches.items()):
            if key in self._watches:
                callback(path)

    def _tell_listeners(self, state: SessionState) -> None:
        for key, listener in list(self._listeners.items()):
            if key in self._listeners:
                listener(state)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._ensemble.on_change.remove(self._on_change)
            self._watches.clear()
            self._listeners.clear()
            if self._is_reachable:
                self._ensemble.end(self._session)
