"""Who is at the other end of a connection, as those see it who let clients in and answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.context import ANONYMOUS
from ottla.server.output_queue import Part

if TYPE_CHECKING:
    from ottla.broker.observing.request_stats import RequestStats
    from ottla.server.listener import Listener

# Or a promise of one. A bare future waits for something to happen and is cancelled when the client goes (a parked
# fetch); a coroutine is work, and runs to its end. So whoever wants to see answers adds a callback and wraps nothing.
Answer = list[Part] | bytes | bytearray | None


class ClientEnd:
    __slots__ = (
        "client_host",
        "context",
        "id",
        "is_known",
        "last_active_ms",
        "listener",
        "login",
        "observed",
        "on_answer",
        "poller",
        "principal",
        "request_bytes_max",
        "since_ms",
    )

    def __init__(self, listener: Listener, client_host: str, connection_id: int) -> None:
        self.listener = listener
        self.poller = listener.poller
        self.client_host = client_host
        self.id = connection_id
        self.context: tuple[bytes | None, Any] | None = None  # the router keeps its request context here
        # Who the client is, and whether that is settled: TLS and a login take their time, but not for ever.
        self.principal = ANONYMOUS
        self.is_known = listener.is_open_to_all
        self.login: Any = None  # of a SASL listener: how far it is
        # Who observes requests keeps here what the last one is counted with.
        self.observed: RequestStats | None = None
        # Whoever has a say in the promised answer that is being made: quotas, and who observes requests.
        self.on_answer: Callable[[Answer], Answer] | None = None
        self.request_bytes_max = listener.first_request_bytes_max
        self.last_active_ms = self.since_ms = listener.clock.monotonic_ms()

    def admit(self, principal: str) -> None:
        """The client is this one; from now on its requests may have the size that requests have."""
        self.principal = principal
        self.is_known = True
        self.request_bytes_max = self.listener.request_bytes_max
        self.context = None  # made for who it was before
