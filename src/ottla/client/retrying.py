"""How a cluster is waited for: one deadline, pauses that grow, and the same question again.

What is worth asking again is no decision of this module: `Retriable` errors and broken connections are
(`common/failures.py`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable

T = TypeVar("T")


class Backoff(NamedTuple):
    """Pauses that double from the first to the longest, as `retry.backoff.ms` and `retry.backoff.max.ms` say."""

    first_ms: float
    max_ms: float


# A transaction that has just ended is not over everywhere for some milliseconds, and most others wait for that.
DEFAULT_BACKOFF = Backoff(20, 500)


class Deadline:
    """How long failures in a row are put up with: counted from the first of them, so work between two questions does
    not count."""

    def __init__(self, seconds: float, backoff: Backoff | None = None) -> None:
        self._seconds = seconds
        self._backoff = backoff or DEFAULT_BACKOFF
        self._failures = 0
        self._since = 0.0

    def moved(self) -> None:
        """Something succeeded: all the time is there again."""
        self._failures = 0

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._since if self._failures else 0.0

    def pause(self) -> bool:
        """After a failure. False, and no pause, when the time is over."""
        if not self._failures:
            self._since = time.monotonic()
        if time.monotonic() - self._since >= self._seconds:
            return False
        pause_ms = min(self._backoff.max_ms, self._backoff.first_ms * 2 ** min(10, self._failures))
        self._failures += 1
        # Not all at the same moment, when many have lost the same broker.
        time.sleep(pause_ms / 1000 * random.uniform(0.8, 1.2))
        return True


def retried(ask: Callable[[], T], deadline: Deadline, forget: Callable[[OttlaError | OSError], None]) -> T:
    """What `ask` gives once it neither loses its broker nor meets a retriable error; `forget` hears of each failure, as
    whom we knew may be somebody else now. Raises OttlaError."""
    while True:
        try:
            answer = ask()
        except (OSError, Retriable) as error:
            forget(error)
            if not deadline.pause():
                raise as_sentence(error) from None
        else:
            deadline.moved()
            return answer


def as_sentence(error: OttlaError | OSError) -> OttlaError:
    if isinstance(error, OttlaError):
        return error
    if isinstance(error, TimeoutError):
        return Retriable("the cluster did not answer in time: see `ottla cluster health`.")
    return Retriable(f"the connection to the cluster broke again and again: {error}.")
