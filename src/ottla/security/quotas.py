"""Client quotas: which limit holds for whom, and what each has used of it. Pure.

A limit is for a user, a client id, both, or an address; a default is for those that are not named. Of several the most
specific counts, in Kafka's order (`_LEVELS`), each kind of limit by itself. Whoever it is found for has a count of
their own: a limit for a user is shared by all clients of that user, one for a client id by all users of that id, and
one for the default user by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.metadata.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuota,
    Entity,
)
from ottla.security.rates import SampledRate, TokenBucket

# Which user and which client id are looked for, until something is found: the one that asks, or the default; 0 where an
# entity has no such part.
_NAMED, _DEFAULT = 1, 2
_LEVELS: tuple[tuple[int, int], ...] = (
    (_NAMED, _NAMED),
    (_NAMED, _DEFAULT),
    (_NAMED, 0),
    (_DEFAULT, _NAMED),
    (_DEFAULT, _DEFAULT),
    (_DEFAULT, 0),
    (0, _NAMED),
    (0, _DEFAULT),
)
# Looked up before, by user and client id; the names come from clients.
_REMEMBERED_MAX = 10_000
# Counts are looked through for some that nobody needs when there are so many.
_COUNTS_MAX = 10_000
_SECOND_MS = 1000


class Limit(NamedTuple):
    # In a second.
    rate: float
    # User and client id, or address; None where all of them count together.
    owner: tuple[str | None, ...]


class Limits:
    """Those of one kind."""

    def __init__(self, quotas: Iterable[ClientQuota], key: str) -> None:
        self._rates: dict[Entity, float] = {one.entity: one.values[key] for one in quotas if key in one.values}
        self._found: dict[tuple[str, str], Limit | None] = {}

    def __bool__(self) -> bool:
        return bool(self._rates)

    def of_client(self, user: str, client_id: str) -> Limit | None:
        key = user, client_id
        if key not in self._found:
            if len(self._found) >= _REMEMBERED_MAX:
                self._found.clear()
            self._found[key] = self._of_client(user, client_id)
        return self._found[key]

    def _of_client(self, user: str, client_id: str) -> Limit | None:
        for user_level, client_level in _LEVELS:
            entity: tuple[tuple[str, str | None], ...] = ()
            if client_level:
                entity += ((CLIENT_ID, client_id if client_level == _NAMED else None),)
            if user_level:
                entity += ((USER, user if user_level == _NAMED else None),)
            rate = self._rates.get(entity)
            if rate is not None:
                return Limit(rate, (user if user_level else None, client_id if client_level else None))
        return None

    def of_address(self, address: str) -> Limit | None:
        rate = self._rates.get(((IP, address),), self._rates.get(((IP, None),)))
        return None if rate is None else Limit(rate, (address,))


@dataclass(frozen=True, slots=True)
class Windows:
    """Over how many windows of which length something is measured."""

    count: int
    ms: int


class ClientQuotas:
    """What the clients of one broker may use, and what they have used."""

    def __init__(self, windows: Windows, controller_windows: Windows) -> None:
        self._windows = windows
        self._controller_windows = controller_windows
        self._rates: dict[tuple[str, tuple[str | None, ...]], SampledRate] = {}
        self._buckets: dict[tuple[str | None, ...], TokenBucket] = {}
        self.replace(())

    def replace(self, quotas: Iterable[ClientQuota]) -> None:
        """Other limits; what was used stays used."""
        known = list(quotas)
        self._produce = Limits(known, PRODUCER_BYTE_RATE)
        self._fetch = Limits(known, CONSUMER_BYTE_RATE)
        self._request = Limits(known, REQUEST_PERCENTAGE)
        self._mutation = Limits(known, CONTROLLER_MUTATION_RATE)
        self._connection = Limits(known, CONNECTION_CREATION_RATE)

    @property
    def are_set(self) -> bool:
        """For any user or client id."""
        return bool(self._produce or self._fetch or self._request or self._mutation)

    @property
    def are_set_for_addresses(self) -> bool:
        return bool(self._connection)

    @property
    def counts_time(self) -> bool:
        return bool(self._request)

    # --- what was used; each gives how long the client has to wait before it may go on

    def produced(self, user: str, client_id: str, size: int, now_ms: int) -> int:
        return self._used(PRODUCER_BYTE_RATE, self._produce.of_client(user, client_id), size, now_ms)

    def to_fetch(self, user: str, client_id: str, size: int, now_ms: int) -> int:
        """Of an answer that is not sent if there is something to wait for: then it does not count. One that is larger
        than the quota ever allows, as a single batch may be, is sent when nothing else counts: in Kafka it never is."""
        limit = self._fetch.of_client(user, client_id)
        if limit is None:
            return 0
        rate = self._rate(CONSUMER_BYTE_RATE, limit, now_ms)
        has_used_some = rate.per_second(now_ms) > 0
        rate.record(size, now_ms)
        wait_ms = rate.throttle_ms(limit.rate, now_ms)
        if not wait_ms or not has_used_some:
            return 0
        rate.record(-size, now_ms)
        return wait_ms

    def fetch_bytes_max(self, user: str, client_id: str) -> int | None:
        """What one answer may have, so that there is one at all."""
        limit = self._fetch.of_client(user, client_id)
        if limit is None:
            return None
        return max(1, int(limit.rate * max(1, self._windows.count - 1) * self._windows.ms / _SECOND_MS))

    def worked(self, user: str, client_id: str, seconds: float, now_ms: int) -> int:
        """Of the time of the broker's event loop; 100 percent are all of it."""
        limit = self._request.of_client(user, client_id)
        return min(self._used(REQUEST_PERCENTAGE, limit, seconds * 100, now_ms), self._windows.ms)

    def connected(self, address: str, now_ms: int) -> int:
        """Of a connection that is not served if there is something to wait for."""
        limit = self._connection.of_address(address)
        wait_ms = min(self._used(CONNECTION_CREATION_RATE, limit, 1, now_ms), self._windows.ms)
        if wait_ms and limit is not None:
            self._rate(CONNECTION_CREATION_RATE, limit, now_ms).record(-1, now_ms)
        return wait_ms

    def before_mutation(self, user: str, client_id: str, now_ms: int) -> int:
        limit = self._mutation.of_client(user, client_id)
        return 0 if limit is None else self._bucket(limit, now_ms).throttle_ms(limit.rate, now_ms)

    def mutated(self, user: str, client_id: str, partitions: int, now_ms: int) -> int:
        limit = self._mutation.of_client(user, client_id)
        if limit is None:
            return 0
        bucket = self._bucket(limit, now_ms)
        bucket.take(partitions, limit.rate, now_ms)
        return bucket.throttle_ms(limit.rate, now_ms)

    def _used(self, key: str, limit: Limit | None, amount: float, now_ms: int) -> int:
        if limit is None:
            return 0
        rate = self._rate(key, limit, now_ms)
        rate.record(amount, now_ms)
        return rate.throttle_ms(limit.rate, now_ms)

    def _rate(self, key: str, limit: Limit, now_ms: int) -> SampledRate:
        found = self._rates.get((key, limit.owner))
        if found is None:
            if len(self._rates) >= _COUNTS_MAX:
                self._rates = {of: rate for of, rate in self._rates.items() if not rate.is_idle(now_ms)}
            found = self._rates[key, limit.owner] = SampledRate(self._windows.count, self._windows.ms)
        return found

    def _bucket(self, limit: Limit, now_ms: int) -> TokenBucket:
        found = self._buckets.get(limit.owner)
        if found is None:
            if len(self._buckets) >= _COUNTS_MAX:
                self._buckets = {of: bucket for of, bucket in self._buckets.items() if not bucket.is_idle(now_ms)}
            found = self._buckets[limit.owner] = TokenBucket(
                self._controller_windows.count, self._controller_windows.ms
            )
        return found
