"""The port through which a broker talks to the others. Sockets stand behind it in production, a network of its own in
the simulation.

A broker answers the requests of one connection one after the other, and a fetch may wait for records. So those who
must not wait for each other name different channels; each is a connection of its own to each broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, Protocol

from ottla.protocol.codec import Message


class Channel(Enum):
    REPLICATION = "replication"
    # What concerns the controller: changes of in-sync replicas, forwarded requests, producer ids.
    CONTROL = "control"
    # What leaders of partitions ask coordinators of transactions.
    TRANSACTIONS = "transactions"
    # What these tell them: an answer waits until markers are committed, which must not hold up the questions.
    MARKERS = "markers"
    # The same for partitions that are known to take long.
    SLOW_MARKERS = "slow markers"


def client_id_of(broker: int) -> str:
    """By which a broker is known to the others."""
    return f"broker-{broker}"


class PeerUnavailable(Exception):
    """The request may or may not have been carried out. `refused`: nobody listens at the broker's address, so that its
    process is gone."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Watching(Protocol):
    def cancel(self) -> object: ...


class Peers(Protocol):
    def request(self, broker: int, request: Message, channel: Channel, *, timeout_ms: int = 30_000) -> Awaitable[Any]:
        """The answer, in the newest version that we know. Raises PeerUnavailable, also when the broker is not in the
        image or the time is over."""

    def exchange(
        self, broker: int, api_key: int, version: int, body: bytes | bytearray, channel: Channel, *, timeout_ms: int
    ) -> Awaitable[memoryview]:
        """The same for whoever encodes and decodes by hand: what follows the header of the request, and of the
        answer."""

    def watch(self, broker: int, epoch: int, on_refused: Callable[[], None]) -> Watching:
        """Call back when the process of this registration is found to be gone: its connection ended, and at its address
        nobody listens any more. Silence proves nothing, and is not told."""

    def on_image(self) -> None:
        """The image has changed: what is under way to a registration that is over fails now."""

    async def close(self) -> None: ...
