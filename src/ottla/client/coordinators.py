"""Asking a coordinator until it gives an answer that lasts.

Coordinators move, load and hang up; whatever of that passes by itself is waited out until the deadline. An unclear
outcome (the connection broke after the request was sent) is asked again too, so this is for requests that may be
repeated: all of the transactional ones may.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.client.cluster import ClusterClient, Unreachable
from ottla.client.connection import BrokerConnection
from ottla.client.retrying import Deadline, retried
from ottla.common.errors import ErrorCode
from ottla.common.failures import MOVED, RETRIABLE, Retriable, RetriableAnswer


class Coordinator:
    """The coordinator of a transactional id or of a group: found when needed, and again when it moved."""

    def __init__(self, cluster: ClusterClient, find: Callable[[], int], what: str) -> None:
        self._cluster = cluster
        self._find = find
        self._what = what
        self._connection: BrokerConnection | None = None
        # What the cluster had finalized when it answered last.
        self.features: dict[str, int] = {}

    def forget(self) -> None:
        self._connection = None

    def ask(
        self,
        request: Callable[[BrokerConnection], Any],
        codes: Callable[[Any], set[int]],
        deadline: Deadline,
    ) -> tuple[int, Any]:
        """The first code that will not pass (0: it went well) and the answer. Raises Retriable when time is over."""
        try:
            return retried(lambda: self._ask(request, codes), deadline, self._failed)
        except Unreachable:
            raise
        except Retriable as error:
            raise Retriable(f"{self._what} does not answer as it should: {error}") from None

    def _ask(self, request: Callable[[BrokerConnection], Any], codes: Callable[[Any], set[int]]) -> tuple[int, Any]:
        if self._connection is None:
            self._connection = self._cluster.broker(self._find())
        answer = request(self._connection)
        self.features = self._connection.finalized_features
        found = codes(answer) - {0}
        lasting = found - RETRIABLE
        if found and not lasting:
            code = min(found & MOVED or found)
            raise RetriableAnswer(f"{ErrorCode(code).name}.", code)
        return min(lasting, default=0), answer

    def _failed(self, error: Exception) -> None:
        self._cluster.forget(error)
        if not isinstance(error, RetriableAnswer) or error.code in MOVED:
            self.forget()


def coordinator_of_group(cluster: ClusterClient, group: str) -> Coordinator:
    return Coordinator(cluster, partial(cluster.group_coordinator, group), f"the coordinator of group '{group}'")
