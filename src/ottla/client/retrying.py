"""How long a cluster is waited for: until nothing has moved for `api_timeout_ms`, with growing pauses in between."""

from __future__ import annotations

import random
import time

from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable

# Where nobody has ever answered, the address is more likely wrong than the cluster down.
FIRST_CONTACT_TIMEOUT_S = 10.0


class Patience:
    """`wait(error)` after each failure, `moved()` after each success; it raises `error` when there is no hope left."""

    def __init__(self, settings: ClientSettings, *, has_met: bool = False) -> None:
        """`has_met`: the cluster is known to exist, if only to somebody else."""
        self._settings = settings
        self._failures = 0
        self._has_met = has_met
        self._since = time.monotonic()

    def moved(self) -> None:
        self._failures, self._has_met, self._since = 0, True, time.monotonic()

    @property
    def waited_s(self) -> float:
        """Since the first of the failures in a row."""
        return time.monotonic() - self._since if self._failures else 0.0

    def wait(self, error: OttlaError | OSError) -> None:
        limit_s = self._settings.api_timeout_ms / 1000
        if not self._has_met:
            limit_s = min(limit_s, FIRST_CONTACT_TIMEOUT_S)
        if not self._failures:
            self._since = time.monotonic()
        if self.waited_s >= limit_s:
            raise as_sentence(error) from None
        self._failures += 1
        pause_ms = self._settings.retry_backoff_ms * 2 ** min(10, self._failures - 1)
        time.sleep(min(pause_ms, self._settings.retry_backoff_max_ms) / 1000 * random.uniform(0.8, 1.2))


def as_sentence(error: OttlaError | OSError) -> OttlaError:
    if isinstance(error, OttlaError):
        return error
    return Retriable(f"the connection to the cluster broke again and again: {error}.")
