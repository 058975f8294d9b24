"""Times and sizes of requests are counted by the compiled code and by its twin, and both come to the same."""

from __future__ import annotations

import importlib
import random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ottla.exposition.histogram import TIME_BOUNDS_S, Histogram
from ottla.kernel import request_runs_pure
from ottla.kernel.request_runs_pure import VERSIONS, Taken

BOUNDS = (0.001, 0.01, 0.1)


@pytest.fixture(params=["compiled", "pure"], scope="session")
def runs(request: pytest.FixtureRequest) -> ModuleType:
    return request_runs_pure if request.param == "pure" else _compiled()


def _compiled() -> ModuleType:
    try:
        return importlib.import_module("ottla.kernel._request_runs")
    except ImportError:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")


def frame_of(version: int, size: int) -> memoryview:
    return memoryview(bytearray(b"\0\0\0" + bytes([version]) + b"x" * (size - 4)))


class Turns:
    """Requests in turns of a poller, with a clock that is set by hand."""

    def __init__(self, runs: ModuleType, bounds: tuple[float, ...] = BOUNDS) -> None:
        self.now_s = 100.0
        self.asked = 0
        self.times = runs.Times(bounds)
        self.run = runs.Run(self.times, self._clock)
        self.poller = SimpleNamespace(turn_began=0.0, holding=[])
        self.connection: Any = SimpleNamespace(poller=self.poller)
        self.begin()

    def _clock(self) -> float:
        self.asked += 1
        return self.now_s

    def begin(self) -> None:
        self.poller.turn_began = self.now_s

    def note(self, takes_s: float, *, version: int = 9, size: int = 100, answer: int = 50) -> None:
        self.now_s += takes_s
        self.run.note(self.connection, frame_of(version, size), b"x" * answer)

    def promised(self, takes_s: float) -> tuple[float, float, float]:
        self.now_s += takes_s
        found: tuple[float, float, float] = self.run.promised(self.connection, frame_of(9, 100))
        return found

    def finish(self) -> None:
        holding, self.poller.holding = self.poller.holding, []
        for holder in holding:
            holder.release_held()


def counts_of(taken: Taken) -> tuple[list[int], ...]:
    return taken.total[0], taken.queue[0], taken.local[0]


def sums_of(taken: Taken) -> list[float]:
    return [round(one, 6) for _, one in (taken.total, taken.queue, taken.local)]


def test_requests_of_a_run_share_its_time_and_end_together(runs: ModuleType) -> None:
    turns = Turns(runs)
    for takes_s in (0.002, 0.001, 0.009):
        turns.note(takes_s, version=12)
    turns.finish()
    taken = turns.times.take()
    assert (taken.versions[12], sum(taken.versions)) == (3, 3)
    assert (taken.request_bytes, taken.answer_bytes) == (300, 150)
    assert sums_of(taken) == [0.036, 0.024, 0.012]
    assert counts_of(taken) == ([0, 0, 3, 0], [0, 3, 0, 0], [0, 3, 0, 0])
    assert turns.asked == 1, "the clock is asked once for all of them"


def test_what_was_taken_is_not_taken_again(runs: ModuleType) -> None:
    turns = Turns(runs)
    turns.note(0.002)
    turns.finish()
    assert sum(turns.times.take().versions) == 1
    empty = turns.times.take()
    assert (sum(empty.versions), empty.request_bytes, empty.answer_bytes) == (0, 0, 0)
    assert counts_of(empty) == ([0] * 4,) * 3
    assert sums_of(empty) == [0, 0, 0]


def test_a_run_begins_when_what_was_before_it_is_done_with(runs: ModuleType) -> None:
    turns = Turns(runs)
    turns.note(0.001)
    turns.run.end()
    turns.now_s += 0.05
    turns.run.last = turns.now_s  # somebody else's request took so long
    turns.note(0.002)
    turns.finish()
    assert sums_of(turns.times.take()) == [0.054, 0.051, 0.003]
    turns.now_s += 1
    turns.begin()
    turns.note(0.001)
    turns.finish()
    assert sums_of(turns.times.take()) == [0.001, 0, 0.001]


def test_one_that_is_promised_has_its_share_and_ends_the_run(runs: ModuleType) -> None:
    turns = Turns(runs)
    turns.note(0.002)
    queue_s, local_s, ended = turns.promised(0.004)
    assert (round(queue_s, 6), round(local_s, 6), ended) == (0.003, 0.003, turns.run.last)
    turns.finish()
    taken = turns.times.take()
    assert sum(taken.versions) == 2, "what is promised is counted when it comes"
    assert sum(taken.total[0]) == 1, "and timed when its answer is there"
    assert sums_of(taken) == [0.006, 0.003, 0.003]
    assert (taken.request_bytes, taken.answer_bytes) == (200, 50)


def test_a_turn_without_a_run_asks_no_clock(runs: ModuleType) -> None:
    turns = Turns(runs)
    turns.run.end()
    turns.run.release_held()
    assert turns.asked == 0
    assert turns.run.last == 0.0


def test_what_is_too_short_for_a_request_is_refused(runs: ModuleType) -> None:
    """Nobody hands over such a frame; were it so, nothing beyond its end may be read."""
    turns = Turns(runs)
    with pytest.raises((ValueError, IndexError)):
        turns.run.note(turns.connection, memoryview(b"abc"), b"answer")
    with pytest.raises((ValueError, IndexError)):
        turns.run.promised(turns.connection, memoryview(b""))


@pytest.mark.parametrize("frame", [b"abcdef", memoryview(bytearray(64)).cast("I")])
def test_the_compiled_one_takes_frames_and_nothing_else(frame: Any) -> None:
    turns = Turns(_compiled())
    with pytest.raises((TypeError, ValueError)):
        turns.run.note(turns.connection, frame, b"answer")
    with pytest.raises(TypeError):
        turns.run.note(turns.connection, frame_of(9, 100), None)


def test_both_count_the_same() -> None:
    """Random turns of known, promised and other requests; times are multiples of what a float has exactly, so that
    those on a bound are the same for both."""
    rng = random.Random(19)
    pairs = [Turns(module, TIME_BOUNDS_S) for module in (_compiled(), request_runs_pure)]
    for _ in range(2_000):
        steps = [
            (rng.randrange(6), rng.randrange(1, 4_000) / 2**16, rng.randrange(40)) for _ in range(rng.randrange(9))
        ]
        answers = []
        for turns in pairs:
            turns.now_s += 1
            turns.begin()
            told = []
            for kind, takes_s, version in steps:
                if kind == 0:
                    told.append(turns.promised(takes_s))
                elif kind == 1:
                    turns.run.end()
                    turns.now_s += takes_s
                    turns.run.last = turns.now_s
                    turns.times.add(takes_s, takes_s * 2, version, version * 2, version)
                else:
                    turns.note(takes_s, version=version, size=100 + version, answer=version)
            turns.finish()
            told.append(turns.asked)
            answers.append(told)
        assert answers[0] == answers[1]
        if rng.random() < 0.1:
            first, second = (turns.times.take() for turns in pairs)
            assert first[:3] == second[:3]
            assert counts_of(first) == counts_of(second)
            assert sums_of(first) == pytest.approx(sums_of(second))
            assert len(first.versions) == VERSIONS


def test_buckets_are_those_of_a_histogram(runs: ModuleType) -> None:
    """A value on a bound is in the bucket that the bound closes."""
    turns, expected = Turns(runs, TIME_BOUNDS_S), Histogram()
    for value in (*TIME_BOUNDS_S, 0.0, 1e-9, 29.999, 31.0, 1e6):
        turns.times.add(0.0, value, 1, 1, 0)
        expected.add(value)
    merged = Histogram()
    merged.merge(*turns.times.take().local)
    assert (merged.counts, merged.sum) == (expected.counts, pytest.approx(expected.sum))
