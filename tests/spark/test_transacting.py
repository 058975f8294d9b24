"""How often a transaction is tried again: by a clock that moves only where somebody waits."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.client.producing import TransactionRefused
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, Retriable
from ottla.spark.sink.transacting import Transacting

MINUTE_MS = 60_000


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self.pass_by)

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds


class Producer:
    """Of a cluster that takes so long for a transaction, and allows so much."""

    transactional_id = "query"

    def __init__(self, clock: Clock, *, takes_ms: int, allowed_ms: int) -> None:
        self._clock, self._takes_ms, self._allowed_ms = clock, takes_ms, allowed_ms
        self.timeout_ms = MINUTE_MS
        self.tried_ms: list[int] = []

    def transact(self) -> None:
        self.tried_ms.append(self.timeout_ms)
        self._clock.pass_by(min(self.timeout_ms, self._takes_ms) / 1000)
        if self.timeout_ms < self._takes_ms:
            raise TransactionRefused("the transaction timed out.", Failure.EPOCH)

    def set_transaction_timeout(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms

    def abort(self) -> None:
        if self.timeout_ms > self._allowed_ms:
            raise TransactionRefused("transaction.max.timeout.ms is less.", Failure.SETTINGS)


def run(producer: Any) -> None:
    Transacting(producer, timeout_ms=MINUTE_MS, retry_timeout_s=60.0, too_long="make batches smaller").run(
        producer.transact, lambda: False
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_transaction_that_times_out_more_than_once_has_more_time_each_time(clock: Clock) -> None:
    """Where only a minute of failures was put up with, the second one ended the query, and the next run began anew."""
    producer = Producer(clock, takes_ms=7 * MINUTE_MS, allowed_ms=15 * MINUTE_MS)
    run(producer)
    assert producer.tried_ms == [MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS, 8 * MINUTE_MS]


def test_what_the_cluster_allows_ends_it(clock: Clock) -> None:
    producer = Producer(clock, takes_ms=20 * MINUTE_MS, allowed_ms=15 * MINUTE_MS)
    with pytest.raises(OttlaError, match=r"allows no longer one: make batches smaller, or raise its transaction\.max"):
        run(producer)
    assert producer.tried_ms == [MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS, 8 * MINUTE_MS]


def test_other_failures_are_put_up_with_for_a_minute(clock: Clock) -> None:
    class Unlucky(Producer):
        def transact(self) -> None:
            super().transact()
            raise Retriable("the coordinator moved.")

    producer = Unlucky(clock, takes_ms=1_000, allowed_ms=15 * MINUTE_MS)
    started_s = clock.now_s
    with pytest.raises(Retriable, match="moved"):
        run(producer)
    assert 60 <= clock.now_s - started_s < 70, "of a clock that only moves in here"
    assert set(producer.tried_ms) == {MINUTE_MS}
