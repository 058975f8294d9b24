"""Ctrl-C and SIGTERM as exceptions that come between two calls of librdkafka, never inside one.

librdkafka's calls run Python of ours and of confluent_kafka: callbacks, and the futures of administrative requests.
Python would raise KeyboardInterrupt in the middle of it, and confluent_kafka goes on with an exception set: records are
not counted, and what comes out in the end is a SystemError. So a signal that arrives inside such a call waits for its
end. The calls are short: none waits for longer than a moment, or longer than it would without this.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, TypeVar

EXIT_TERMINATED = 143

# Called for each record, and the only one that runs no Python.
_PLAIN = ("produce",)

Client = TypeVar("Client")

_inside = 0
_waiting: list[int] = []


def install() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _arrived)


def _arrived(signum: int, frame: FrameType | None) -> None:
    if _inside:
        _waiting.append(signum)
    else:
        _raise(signum)


def _raise(signum: int) -> NoReturn:
    _waiting.clear()
    if signum == signal.SIGTERM:
        sys.exit(EXIT_TERMINATED)
    raise KeyboardInterrupt


def uninterrupted(kind: type[Client]) -> type[Client]:
    """A client whose calls a signal does not reach into: it is raised when the call is over."""
    public = (name for name in dir(kind) if not name.startswith("_") and name not in _PLAIN)
    calls = {name: _held(call) for name in public if callable(call := getattr(kind, name))}
    return type(kind.__name__, (kind,), calls)


def _held(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def held(*arguments: Any, **more: Any) -> Any:
        global _inside
        if threading.current_thread() is not threading.main_thread():
            return call(*arguments, **more)  # signals are the main thread's alone
        _inside += 1
        try:
            return call(*arguments, **more)
        finally:
            _inside -= 1
            if _waiting and not _inside:
                _raise(_waiting[0])

    return held
