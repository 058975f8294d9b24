"""The simulated event loop, its processes and its threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.testing.simulation.loop import Process, SimulatedLoop


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    loop = SimulatedLoop()
    yield loop
    loop.threads.close()
    loop.close()


def test_a_day_passes_in_no_time(loop: SimulatedLoop) -> None:
    began = time.monotonic()
    loop.run_until_complete(asyncio.sleep(86_400))
    assert loop.time() == 86_400
    assert time.monotonic() - began < 60


def test_what_a_process_starts_belongs_to_it(loop: SimulatedLoop) -> None:
    process, seen = Process(loop, "one"), []

    async def work() -> None:
        seen.append(loop.process)
        await asyncio.sleep(1)
        loop.call_soon(lambda: seen.append(loop.process))
        await asyncio.create_task(asyncio.sleep(1))
        seen.append(loop.process)

    loop.run_until_complete(loop.create_task(work(), context=process.context()))
    assert seen == [process, process, process]
    assert loop.process is None


def _ticking(loop: SimulatedLoop, process: Process) -> list[float]:
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(loop.time())

    loop.create_task(tick(), context=process.context())
    return ticks


def test_a_paused_process_does_nothing_until_it_goes_on(loop: SimulatedLoop) -> None:
    process = Process(loop, "one")
    ticks = _ticking(loop, process)
    loop.call_later(2.5, process.pause)
    loop.call_later(7.5, process.resume)
    loop.run_until_complete(asyncio.sleep(9))
    assert ticks == [1, 2, 7.5, 8.5]


def test_of_a_killed_process_nothing_is_heard_any_more_not_even_its_finally(loop: SimulatedLoop) -> None:
    process, said = Process(loop, "one"), []

    async def work() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            said.append("finally")

    task = loop.create_task(work(), context=process.context())
    loop.call_later(1, process.kill)
    loop.run_until_complete(asyncio.sleep(100))
    assert said == []
    assert not task.done()
    task._log_destroy_pending = False  # type: ignore[attr-defined]


def _wait_s(loop: SimulatedLoop, seconds: float) -> None:
    def begin(go_on: Callable[[], None]) -> None:
        loop.call_later(seconds, go_on)

    loop.threads.wait(begin)


def test_a_thread_may_wait_while_others_go_on(loop: SimulatedLoop) -> None:
    said: list[tuple[float, str]] = []

    def work(name: str, seconds: float) -> str:
        said.append((loop.time(), name))
        _wait_s(loop, seconds)
        said.append((loop.time(), name))
        return name

    async def both() -> list[str]:
        return await asyncio.gather(
            loop.run_in_executor(None, work, "slow", 3), loop.run_in_executor(None, work, "fast", 1)
        )

    assert loop.run_until_complete(both()) == ["slow", "fast"]
    assert said == [(0, "slow"), (0, "fast"), (1, "fast"), (3, "slow")]


def test_what_a_thread_raises_is_raised_where_it_is_awaited(loop: SimulatedLoop) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.run_until_complete(loop.run_in_executor(None, fail))


def test_a_thread_of_a_killed_process_never_goes_on(loop: SimulatedLoop) -> None:
    process, said = Process(loop, "one"), []

    def work() -> None:
        _wait_s(loop, 2)
        said.append("goes on")

    async def run() -> None:
        await loop.run_in_executor(None, work)

    task = loop.create_task(run(), context=process.context())
    loop.call_later(1, process.kill)
    loop.run_until_complete(asyncio.sleep(10))
    assert said == []
    task._log_destroy_pending = False  # type: ignore[attr-defined]
