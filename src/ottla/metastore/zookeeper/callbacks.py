"""One thread that calls listeners and watches, one after the other, in the order in which things happened.

It is not kazoo's: a callback may read the store, and kazoo's threads must be free to bring the answer.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Container
from functools import partial

from ottla.metastore.port import SessionListener, SessionState, WatchCallback, is_at_or_below

log = logging.getLogger("ottla.metastore")


class Callbacks:
    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._keys = itertools.count()
        self._watches: dict[int, tuple[str, WatchCallback]] = {}
        self._listeners: dict[int, SessionListener] = {}
        # What was told last.
        self._state = SessionState.CONNECTED
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="metadata-callbacks", daemon=True)
        self._thread.start()

    # --- from any thread

    def add_watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        key = next(self._keys)
        self._watches[key] = (path, callback)

        def cancel() -> None:
            self._watches.pop(key, None)

        return cancel

    def add_listener(self, listener: SessionListener) -> Callable[[], None]:
        key = next(self._keys)
        self._listeners[key] = listener

        def introduce() -> None:
            if self._state is not SessionState.CONNECTED:
                self._call(self._listeners, key, partial(listener, self._state))

        self._tasks.put(introduce)

        def cancel() -> None:
            self._listeners.pop(key, None)

        return cancel

    def watched(self) -> list[str]:
        """Each path once, in the order of watching."""
        return list(dict.fromkeys(path for path, _ in list(self._watches.values())))

    def changed(self, path: str) -> None:
        self._tasks.put(partial(self._tell_watches, path))

    def missed(self) -> None:
        """Anything may have changed: each watch is called with its own path."""
        self._tasks.put(self._tell_all_watches)

    def session(self, state: SessionState) -> threading.Event:
        """The event is set when all listeners have been told."""
        told = threading.Event()
        self._tasks.put(partial(self._tell_listeners, state, told))
        return told

    def all_told(self, timeout_s: float) -> None:
        """Wait until everything that has happened by now was told; at once on the thread itself."""
        if threading.current_thread() is not self._thread:
            told = threading.Event()
            self._tasks.put(told.set)
            told.wait(timeout_s)

    def close(self) -> None:
        """What is under way is finished, what waits is dropped."""
        self._is_closed = True
        self._tasks.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(10)

    # --- on the thread

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _tell_watches(self, changed: str) -> None:
        for key, (path, callback) in list(self._watches.items()):
            if is_at_or_below(changed, path):
                self._call(self._watches, key, partial(callback, changed))

    def _tell_all_watches(self) -> None:
        for key, (path, callback) in list(self._watches.items()):
            self._call(self._watches, key, partial(callback, path))

    def _tell_listeners(self, state: SessionState, told: threading.Event) -> None:
        self._state = state
        for key, listener in list(self._listeners.items()):
            self._call(self._listeners, key, partial(listener, state))
        told.set()

    def _call(self, registered: Container[int], key: int, call: Callable[[], None]) -> None:
        """Unless it was cancelled meanwhile. One that fails keeps nobody else from being told."""
        if self._is_closed or key not in registered:
            return
        try:
            call()
        except Exception:
            log.exception("a callback of the metadata store failed")
