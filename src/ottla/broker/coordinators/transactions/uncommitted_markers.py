"""Markers that a coordinator elsewhere has asked for, and that are in the log here but not committed yet.

Its answer comes before they are, where replicas or a disk take long, and it asks again. Then the marker that is there
is waited for: written once more each time, the log would grow for as long as a follower is slow. Asked for again when
it has just been committed, it is written twice at the most, which does no harm: the second one ends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from ottla.common.ids import TopicPartition


class AskedMarker(NamedTuple):
    """With all of this the same it ends the same transaction: the coordinator begins no other one of the producer
    before it knows that this marker is committed."""

    where: TopicPartition
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int


class UncommittedMarkers:
    def __init__(self) -> None:
        self._promises: dict[AskedMarker, asyncio.Future[None]] = {}

    def get(self, asked: AskedMarker) -> asyncio.Future[None] | None:
        promise = self._promises.get(asked)
        return None if promise is None or promise.done() else promise

    def keep(self, asked: AskedMarker, waiting: Awaitable[None]) -> asyncio.Future[None]:
        """Until it is committed, or lost: then it has to be written again."""
        promise = self._promises[asked] = asyncio.ensure_future(waiting)

        def ended(promise: asyncio.Future[None]) -> None:
            if self._promises.get(asked) is promise:
                del self._promises[asked]
            if not promise.cancelled():
                promise.exception()  # whoever asked may not wait any more

        promise.add_done_callback(ended)
        return promise
