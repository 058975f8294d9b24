"""Long work is cut into turns: it waits for what it must, and others run in between."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker import turns as module
from ottla.broker.turns import Turns
from ottla.common.steps import Steps, each


def counting(steps: int, seen: list[int], mark: int = 0) -> Steps[str]:
    for _ in range(steps):
        seen.append(mark)
        yield None
    return "done"


@pytest.fixture
def one_step_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_S", 0.0)
    monkeypatch.setattr(module, "FIRST_TURN_S", 0.0)


async def test_short_work_is_done_at_once() -> None:
    assert Turns().start(counting(3, [])) == "done"


async def test_what_it_waits_for_is_awaited_and_failures_are_raised_inside() -> None:
    async def answer(value: int) -> int:
        if value < 0:
            raise ValueError(value)
        return value

    def work() -> Steps[list[Any]]:
        got: list[Any] = [(yield answer(7))]
        try:
            yield answer(-1)
        except ValueError as error:
            got.append(str(error))
        return got

    assert await Turns().start(work()) == [7, "-1"]  # type: ignore[misc]


@pytest.mark.usefixtures("one_step_a_turn")
async def test_turns_are_taken_one_after_another() -> None:
    turns, seen = Turns(), list[int]()
    await asyncio.gather(turns.queue(counting(20, seen, 1)), turns.queue(counting(20, seen, 2)))
    assert seen.count(1) == seen.count(2) == 20
    assert 1 in seen[:4]
    assert 2 in seen[:4]


async def test_the_loop_runs_between_two_turns() -> None:
    rounds = 0

    async def neighbour() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    def long(steps: int) -> Steps[None]:
        for _ in range(steps):
            end = time.perf_counter() + module.TURN_S
            while time.perf_counter() < end:
                pass
            yield None

    other = asyncio.ensure_future(neighbour())
    await Turns().queue(long(10))
    other.cancel()
    assert rounds >= 10


async def test_waiting_for_what_is_there_already_is_no_way_around() -> None:
    """Thousands of awaits that never suspend are as long as work without any."""
    rounds = 0

    async def neighbour() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def nothing() -> None:
        end = time.perf_counter() + module.TURN_S
        while time.perf_counter() < end:
            pass

    def work() -> Steps[None]:
        for _ in range(10):
            yield nothing()

    other = asyncio.ensure_future(neighbour())
    await Turns().queue(work())
    other.cancel()
    assert rounds >= 9


async def test_each_gives_what_becomes_of_every_item() -> None:
    assert Turns().start(each([1, 2], str)) == ["1", "2"]


@pytest.mark.parametrize(("others_had", "turns"), [(0, 21), (2, 21), (12, 7), (1000, 5)])
async def test_where_others_take_long_turns_last_longer(
    monkeypatch: pytest.MonkeyPatch, others_had: int, turns: int
) -> None:
    """Or what is long would never end where there is no time: 20 ms of it, in turns of one to five."""
    now_s, rounds = 0.0, 0
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now_s))

    async def neighbour() -> None:
        nonlocal now_s, rounds
        while True:
            rounds += 1
            now_s += others_had * module.TURN_S
            await asyncio.sleep(0)

    def long() -> Steps[None]:
        nonlocal now_s
        for _ in range(20):
            now_s += module.TURN_S
            yield None

    other = asyncio.ensure_future(neighbour())
    await Turns().queue(long())
    other.cancel()
    assert abs(rounds - turns) <= 1
