"""Asking a coordinator until it gives an answer that lasts.

Coordinators move, load and hang up; whatever of that passes by itself is waited out until the patience is over. An
unclear outcome (the connection broke after the request was sent) is asked again too, so this is for requests that may
be repeated: all of the transactional ones may.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ottla.client.cluster import ClusterClient, Unreachable
from ottla.client.connection import BrokerConnection
from ottla.common.errors import ErrorCode
from ottla.common.failures import MOVED, RETRIABLE, Retriable

RETRY_S = 0.02
RETRY_S_MAX = 0.5


class Patience:
    """A time that runs out, and pauses that grow."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._pause_s = RETRY_S

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._ends

    def pause(self) -> None:
        time.sleep(self._pause_s)
        self._pause_s = min(RETRY_S_MAX, self._pause_s * 1.5)


class Coordinator:
    """The coordinator of a transactional id or of a group: found when needed, and again when it moved."""

    def __init__(self, cluster: ClusterClient, find: Callable[[], BrokerConnection], what: str) -> None:
        self._cluster = cluster
        self._find = find
        self._what = what
        self._connection: BrokerConnection | None = None
        # What the cluster had finalized when it answered last.
        self.features: dict[str, int] = {}

    def connection(self) -> BrokerConnection:
        if self._connection is None:
            self._connection = self._find()
        return self._connection

    def forget(self) -> None:
        self._connection = None

    def ask(
        self,
        request: Callable[[BrokerConnection], Any],
        codes: Callable[[Any], set[int]],
        patience: Patience,
    ) -> tuple[int, Any]:
        """The first code that will not pass (0: it went well) and the answer. Raises Retriable when time is over."""
        while True:
            problem: str
            try:
                answer = request(self.connection())
            except (OSError, Retriable) as error:
                self._cluster.close()
                self.forget()
                problem = str(error).rstrip(".")
                if patience.is_over and isinstance(error, Unreachable):
                    raise
            else:
                self.features = self.connection().finalized_features
                found = codes(answer) - {0}
                lasting = found - RETRIABLE
                if not found or lasting:
                    return min(lasting, default=0), answer
                if found & MOVED:
                    self.forget()
                problem = ErrorCode(min(found)).name
            if patience.is_over:
                raise Retriable(f"{self._what} does not answer as it should: {problem}.")
            patience.pause()
