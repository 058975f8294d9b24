"""How a client is slowed down that uses more than its quotas allow (KIP-124, 219, 599; Kafka's ClientQuotaManager).

The router hands every request over while there is a quota for any user or client id, and nothing otherwise. A request
is answered at once, whatever it costs; the answer says for how long its client is throttled, and for so long nothing
more is read from the connection. What counts:

- producer_byte_rate: the size of a Produce;
- consumer_byte_rate: the size of an answer to Fetch, which is sent without records if it is too much (`FetchQuota`);
- request_percentage: the time for which the event loop works on a request, also where it does so in turns;
- controller_mutation_rate: partitions that are made or deleted, at the controller (`MutationQuota`).

What other brokers ask for is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.broker.apis import APIS
from ottla.broker.context import RequestContext
from ottla.broker.observing.stages import COUNTED
from ottla.broker.quotas.throttle_time import throttle_time_of, with_throttle_time
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.image import ClusterImage
from ottla.security.quotas import ClientQuotas, Windows

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.router import Router
    from ottla.server.client_end import Answer
    from ottla.server.connection import Connection

_PRODUCE, _FETCH, _ADD_PARTITIONS_TO_TXN, _WRITE_TXN_MARKERS = 0, 1, 24, 27
_ADD_PARTITIONS_BY_BROKERS = 4
_OF_BROKERS = frozenset(key for key, api in APIS.items() if api.for_brokers) | {_WRITE_TXN_MARKERS}
# Their handlers say it themselves, or the controller has.
_SAY_IT_THEMSELVES = frozenset(key for key, api in APIS.items() if api.for_controller) | {_FETCH}
# Lengths from here on are those of a client id that is null.
_NULL = 0x8000
# A line of a partition in an answer to Fetch, about.
_LINE_BYTES = 40


class Charge:
    """What one request costs its client."""

    __slots__ = ("client_id", "connection", "context", "key", "size", "version", "worked_s")

    # Of the connection; while it is set nobody else can ask through it.
    context: RequestContext

    def __init__(self, connection: Connection, frame: memoryview) -> None:
        self.connection = connection
        self.key = frame[0] << 8 | frame[1]
        self.version = frame[2] << 8 | frame[3]
        # From the frame: the context is still that of the client id before where a request is known by its first bytes.
        length = frame[8] << 8 | frame[9]
        self.client_id = str(frame[10 : 10 + length], errors="replace") if length < _NULL else ""
        self.size = len(frame)
        self.worked_s = 0.0


class Throttling:
    def __init__(self, broker: Broker) -> None:
        config = broker.config
        self._broker = broker
        self.quotas = ClientQuotas(
            Windows(config.quota_window_num, config.quota_window_size_seconds * 1000),
            Windows(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000),
        )
        self._seen: ClusterImage | None = None

    def on_image(self, _: ClusterImage, image: ClusterImage) -> None:
        if self._seen is None or image.quotas is not self._seen.quotas:
            self.quotas.replace(image.quotas.values())
            self._broker.throttling = self if self.quotas.are_set else None
        self._seen = image

    # --- the way of every request

    def handle(self, router: Router, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        """`frame` is not looked at afterwards: it may be somebody else's by then."""
        charge = Charge(connection, frame)
        turns, began = self._broker.turns, time.perf_counter()
        turns.charge = charge
        try:
            answer = router.handle(connection, frame, COUNTED)
        finally:
            turns.charge = None
            charge.worked_s += time.perf_counter() - began
        cached = connection.context
        if cached is None:
            return answer  # it could not be read
        charge.context = cached[1]
        if answer is None or isinstance(answer, (bytes, bytearray, list)):
            return self._settle(charge, answer)
        connection.on_answer = lambda answered: self._settle(charge, answered)
        return answer

    def _settle(self, charge: Charge, answer: Answer) -> Answer:
        """The answer is here: it leaves at once, and says how long the client has to wait."""
        context = charge.context
        if _is_between_brokers(charge):
            return answer
        quotas, now_ms = self.quotas, self._broker.clock.monotonic_ms()
        who = user_of(context), charge.client_id
        told_ms = throttle_time_of(answer, charge.key, charge.version) if charge.key in _SAY_IT_THEMSELVES else 0
        wait_ms = told_ms
        if charge.key == _PRODUCE:
            wait_ms = quotas.produced(*who, charge.size, now_ms)
        if quotas.counts_time:
            wait_ms = max(wait_ms, quotas.worked(*who, charge.worked_s, now_ms))
        if wait_ms <= 0:
            return answer
        if wait_ms != told_ms:
            answer = with_throttle_time(answer, charge.key, charge.version, wait_ms)
        if self._broker.observer is not None:
            self._broker.observer.throttled(charge.key, wait_ms)
        charge.connection.mute()
        self._broker.call_later(wait_ms, charge.connection.unmute)
        return answer

    # --- what handlers ask

    def fetch_quota(self, context: RequestContext) -> FetchQuota:
        return FetchQuota(self, user_of(context), context.client_id or "")

    def to_fetch(self, user: str, client_id: str, size: int) -> int:
        return self.quotas.to_fetch(user, client_id, size, self._broker.clock.monotonic_ms())

    def connection_wait_ms(self, address: str) -> int:
        """How long a client of this address that has just connected is left without an answer; 0 if it is served."""
        if not self.quotas.are_set_for_addresses:
            return 0
        return self.quotas.connected(address, self._broker.clock.monotonic_ms())


def user_of(context: RequestContext) -> str:
    return context.principal.partition(":")[2]


def _is_between_brokers(charge: Charge) -> bool:
    if charge.key == _FETCH:
        return charge.context.is_of_broker
    if charge.key == _ADD_PARTITIONS_TO_TXN:
        return charge.version >= _ADD_PARTITIONS_BY_BROKERS
    return charge.key in _OF_BROKERS


class FetchQuota:
    """That of one fetch, until it is answered."""

    __slots__ = ("_client_id", "_throttling", "_user", "bytes_max")

    def __init__(self, throttling: Throttling, user: str, client_id: str) -> None:
        self._throttling = throttling
        self._user = user
        self._client_id = client_id
        # So that an answer fits at all.
        self.bytes_max = throttling.quotas.fetch_bytes_max(user, client_id)

    def wait_ms(self, record_bytes: int, lines: int) -> int:
        """0: the answer may be sent, and counts."""
        return self._throttling.to_fetch(self._user, self._client_id, record_bytes + lines * _LINE_BYTES)


class MutationQuota:
    """How many partitions a request may make or delete. From the version on whose clients understand it one that is
    over its quota is refused (THROTTLING_QUOTA_EXCEEDED); before, it is done, and the client has to wait."""

    def __init__(self, broker: Broker, context: RequestContext, *, strict_since: int) -> None:
        self._throttling = broker.throttling
        self._broker = broker
        self._who = user_of(context), context.client_id or ""
        self._is_strict = context.version >= strict_since
        self.wait_ms = 0

    def take(self, partitions: int) -> ApiError | None:
        """What to answer where they may not be changed."""
        if self._throttling is None:
            return None
        quotas, now_ms = self._throttling.quotas, self._broker.clock.monotonic_ms()
        if self._is_strict:
            wait_ms = quotas.before_mutation(*self._who, now_ms)
            if wait_ms:
                self.wait_ms = max(self.wait_ms, wait_ms)
                return _EXCEEDED
            quotas.mutated(*self._who, partitions, now_ms)
        else:
            self.wait_ms = max(self.wait_ms, quotas.mutated(*self._who, partitions, now_ms))
        return None


_EXCEEDED = ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
