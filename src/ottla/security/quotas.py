"""Client quotas: which limit holds for whom, and what each has used of it. Pure.

A limit is for a user, a client id, both, or an address; a default is for those that are not named. Of several the most
specific counts, in Kafka's order (`_LEVELS`), each kind of limit by itself. Whoever it is found for has a count of
their own: a limit for a user is shared by all clients of that user, one for a client id by all users of that id, and
one for the default user by nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

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
# Looked up before, by user and client id. The names come from clients: what is kept of a long one (they have up to 32
# KiB) is its digest.
_REMEMBERED_MAX = 10_000
_NAME_MAX = 256
# Counts are looked through for some that nobody needs when there are so many, and again when there are twice as many
# as were left.
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
        self._rates: dict[Entity, float] = {quota.entity: quota.values[key] for quota in quotas if key in quota.values}
        self._found: dict[tuple[str, str], Limit | None] = {}

    def __bool__(self) -> bool:
        return bool(self._rates)

    def of_client(self, user: str, client_id: str) -> Limit | None:
        if len(user) > _NAME_MAX or len(client_id) > _NAME_MAX:
            return self._of_client(user, client_id)
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
                return Limit(rate, (_kept(user) if user_level else None, _kept(client_id) if client_level else None))
        return None

    def of_address(self, address: str) -> Limit | None:
        rate = self._rates.get(((IP, address),), self._rates.get(((IP, None),)))
        return None if rate is None else Limit(rate, (address,))


def _kept(name: str) -> str:
    if len(name) <= _NAME_MAX:
        return name
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


class _Used(Protocol):
    def is_idle(self, now_ms: int) -> bool: ...


_U = TypeVar("_U", bound=_Used)


class _Counts(Generic[_U]):
    """What each has used; those that have used nothing for long are forgotten."""

    def __init__(self, make: Callable[[], _U]) -> None:
        self._make = make
        self._counts: dict[Hashable, _U] = {}
        self._look_through_at = _COUNTS_MAX

    def __len__(self) -> int:
        return len(self._counts)

    def of(self, owner: Hashable, now_ms: int) -> _U:
        found = self._counts.get(owner)
        if found is None:
            if len(self._counts) >= self._look_through_at:
                self._counts = {entity: count for entity, count in self._counts.items() if not count.is_idle(now_ms)}
                self._look_through_at = max(_COUNTS_MAX, 2 * len(self._counts))
            found = self._counts[owner] = self._make()
        return found


@dataclass(frozen=True, slots=True)
class Windows:
    """Over how many windows of which length something is measured."""

    count: int
    ms: int


class ClientQuotas:
    """What the clients of one broker may use, and what they have used."""

    def __init__(self, windows: Windows, controller_windows: Windows) -> None:
        self._windows = windows
        self._rates = _Counts(lambda: SampledRate(windows.count, windows.ms))
        self._buckets = _Counts(lambda: TokenBucket(controller_windows.count, controller_windows.ms))
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
        return self._rates.of((key, limit.owner), now_ms)

    def _bucket(self, limit: Limit, now_ms: int) -> TokenBucket:
        return self._buckets.of(limit.owner, now_ms)
