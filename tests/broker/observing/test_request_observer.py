"""What is told of requests that are measured together, and of those around them. The clock is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.apis import APIS
from ottla.broker.observing import request_observer
from ottla.broker.observing.request_observer import RequestObserver
from ottla.broker.observing.request_stats import RequestStats
from ottla.server.client_end import Answer

PRODUCE, FETCH, METADATA = 0, 1, 3


class Turn:
    """Requests that a poller found in one turn. Each takes some milliseconds, and so does nothing else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0.0
        monkeypatch.setattr(request_observer, "perf_counter", lambda: self.now_ms / 1_000)
        self.poller: Any = SimpleNamespace(in_turn=False, turn_began=0.0, turn_size=0, holding=[])
        context = SimpleNamespace(produce_prefix_end=4)
        self.connection: Any = SimpleNamespace(
            poller=self.poller, observed=None, on_answer=None, context=(b"client", context)
        )
        self.throttling = None
        self.given_up: list[Exception] = []
        self.observer = RequestObserver(self, self)  # type: ignore[arg-type]
        self._takes_ms = 0.0
        self._answer: Answer | Awaitable[Answer] | Exception = None

    # In the place of the router: every Produce is like those before it.

    def handle(self, connection: Any, frame: memoryview, stage: int) -> Answer | Awaitable[Answer]:
        self.now_ms += self._takes_ms
        assert not isinstance(self._answer, Exception)
        return self._answer

    def known_frame(self, broker: Any, context: Any, frame: memoryview) -> Answer | Awaitable[Answer]:
        if frame[1] != PRODUCE:
            return None
        if isinstance(self._answer, Exception):
            raise self._answer
        return self.handle(self.connection, frame, 0)

    def give_up(self, connection: Any, error: Exception) -> None:
        self.given_up.append(error)

    def of(self, *requests: Callable[[], object]) -> None:
        self.poller.in_turn, self.poller.turn_size, self.poller.turn_began = True, len(requests), self.now_ms / 1_000
        for request in requests:
            request()
        self.poller.in_turn = False
        holding, self.poller.holding = self.poller.holding, []
        for holder in holding:
            holder.release_held()
        self.now_ms += 1_000

    def request(
        self,
        key: int,
        takes_ms: float,
        answer: Answer | Awaitable[Answer] = b"done",
        *,
        version: int = 9,
        size: int = 8,
    ) -> Callable[[], object]:
        def asked() -> object:
            self._takes_ms, self._answer = takes_ms, answer
            frame = memoryview(bytes([0, key, 0, version]).ljust(size, b"x"))
            return self.observer.handle(self.connection, frame)

        return asked

    def stats(self, key: int) -> RequestStats:
        found = self.observer.by_api[APIS[key].name]
        found.fold()
        return found

    def times(self, key: int) -> dict[str, float]:
        """In all, in milliseconds."""
        stats = self.stats(key)
        return {name: round(getattr(stats, name).sum * 1_000, 6) for name in ("total", "queue", "local", "remote")}


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Turn:
    return Turn(monkeypatch)


def test_requests_of_a_run_share_its_time_and_end_together(turn: Turn) -> None:
    turn.of(*[turn.request(PRODUCE, takes_ms) for takes_ms in (1, 2, 3)])
    stats = turn.stats(PRODUCE)
    assert stats.count == 3
    assert stats.versions[9] == 3
    assert (stats.request_bytes, stats.response_bytes) == (24, 12)
    assert turn.times(PRODUCE) == {"total": 18, "queue": 12, "local": 6, "remote": 0}
    assert stats.total.count == stats.local.count == stats.queue.count == 3
    assert stats.total.buckets(scale=1_000)[6:8] == [("5.0", 0), ("10.0", 3)]
    assert stats.local.buckets(scale=1_000)[4:6] == [("1.0", 0), ("2.5", 3)]


def test_one_of_another_api_is_not_told_the_time_of_those_around_it(turn: Turn) -> None:
    produce, metadata = turn.request(PRODUCE, 1), turn.request(METADATA, 50)
    turn.of(produce, produce, metadata, produce)
    assert turn.times(METADATA) == {"total": 52, "queue": 2, "local": 50, "remote": 0}
    assert turn.times(PRODUCE) == {"total": 2 * 2 + 53, "queue": 2 + 52, "local": 3, "remote": 0}


def test_versions_are_counted_by_themselves(turn: Turn) -> None:
    turn.of(*[turn.request(PRODUCE, 1, version=version) for version in (9, 9, 10, 9, 11)])
    versions = turn.stats(PRODUCE).versions
    assert {version: count for version, count in enumerate(versions) if count} == {9: 3, 10: 1, 11: 1}
    assert turn.times(PRODUCE)["local"] == 5


def test_an_answer_that_is_promised_is_measured_until_it_comes(turn: Turn) -> None:
    async def later() -> Answer:
        return None

    promise = later()
    turn.of(turn.request(PRODUCE, 1), turn.request(PRODUCE, 3, promise), turn.request(PRODUCE, 1))
    promise.close()
    assert turn.stats(PRODUCE).count == 3
    assert turn.stats(PRODUCE).total.count == 2
    turn.now_ms = 2_004
    assert turn.connection.on_answer(b"answer") == b"answer"
    # Two together took 4 ms, 2 each; the promise was given after 4 ms. The third waited 4 ms and took one.
    assert turn.times(PRODUCE) == {"total": 4 + 2_004 + 5, "queue": 2 + 2 + 4, "local": 5, "remote": 2_000}
    assert turn.stats(PRODUCE).response_bytes == 4 + 6 + 4


def test_promises_one_after_the_other_share_nothing(turn: Turn) -> None:
    future = SimpleNamespace(__await__=None)
    turn.of(*[turn.request(FETCH, takes_ms, future) for takes_ms in (1, 5)])  # type: ignore[arg-type]
    turn.now_ms = 6
    turn.connection.on_answer(b"")  # of the second, which settles the first, too
    stats = turn.stats(FETCH)
    assert stats.count == 2
    assert stats.local.sum == pytest.approx(0.006)


@pytest.mark.parametrize("answer", [None, [b"some", b"parts"], bytearray(b"some parts")])
def test_answers_of_other_kinds_are_counted_as_well(turn: Turn, answer: Answer) -> None:
    turn.of(turn.request(FETCH, 1, answer), turn.request(FETCH, 2, answer))
    stats = turn.stats(FETCH)
    assert stats.count == stats.total.count == 2
    assert stats.response_bytes == (
        0 if answer is None else 2 * len(b"".join(answer) if isinstance(answer, list) else answer)
    )
    assert turn.times(FETCH) == {"total": 1 + 3, "queue": 1, "local": 3, "remote": 0}


def test_one_outside_of_a_turn_and_one_alone_in_it_are_told_exactly(turn: Turn) -> None:
    turn.of(turn.request(PRODUCE, 4))
    turn.request(PRODUCE, 2)()
    assert turn.times(PRODUCE) == {"total": 6, "queue": 0, "local": 6, "remote": 0}


def test_a_run_does_not_go_on_in_the_next_turn(turn: Turn) -> None:
    for _ in range(3):
        turn.of(turn.request(PRODUCE, 1), turn.request(PRODUCE, 1))
    assert turn.times(PRODUCE) == {"total": 12, "queue": 6, "local": 6, "remote": 0}
    assert not turn.poller.holding


def test_nothing_is_lost_of_many_turns_nor_when_somebody_looks_in_between(turn: Turn) -> None:
    turns = 600
    for number in range(turns):
        turn.of(turn.request(PRODUCE, 1), turn.request(PRODUCE, 1), turn.request(METADATA, 1))
        if number % 50 == 0:
            turn.stats(PRODUCE)
    stats = turn.stats(PRODUCE)
    assert stats.count == stats.total.count == stats.queue.count == stats.local.count == 2 * turns
    assert turn.times(PRODUCE)["local"] == 2 * turns
    assert turn.times(METADATA)["local"] == turns


def test_requests_of_an_api_that_is_not_served_are_counted_with_all_such(turn: Turn) -> None:
    turn.of(turn.request(200, 1, None), turn.request(255, 1, None))
    turn.observer.by_api["Unknown"].fold()
    assert turn.observer.by_api["Unknown"].count == 2


def test_futures_are_promises(turn: Turn) -> None:
    loop = asyncio.new_event_loop()
    turn.of(turn.request(PRODUCE, 1, loop.create_future()))
    loop.close()
    assert turn.stats(PRODUCE).count == 1
    assert turn.stats(PRODUCE).total.count == 0


def test_a_request_that_fails_is_counted_and_given_up(turn: Turn) -> None:
    turn.of(turn.request(PRODUCE, 1), turn.request(PRODUCE, 1, ValueError("broken")), turn.request(PRODUCE, 1))
    assert turn.stats(PRODUCE).count == 3
    assert [str(error) for error in turn.given_up] == ["broken"]


def test_quotas_see_requests_that_are_like_those_before_them(turn: Turn) -> None:
    """They are asked by the router, so nothing may be handled before."""
    turn.throttling = object()  # type: ignore[assignment]
    turn.known_frame = None  # type: ignore[assignment,method-assign]
    turn.of(turn.request(PRODUCE, 1), turn.request(PRODUCE, 1))
    assert turn.stats(PRODUCE).count == 2
