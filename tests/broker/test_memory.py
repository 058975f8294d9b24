"""Memory for what requests open: no sum of them exceeds it, and all get their turn."""

from __future__ import annotations

import asyncio

import pytest

from ottla.broker.memory import Memory


async def test_what_fits_is_given_at_once() -> None:
    memory = Memory(10)
    await memory.reserve(4)
    await memory.reserve(6)
    assert memory.held_bytes == 10


async def test_more_waits_until_something_is_given_back_first_come_first_served() -> None:
    memory, order = Memory(10), list[int]()

    async def use(number: int, size: int) -> None:
        await memory.reserve(size)
        order.append(number)
        assert memory.held_bytes <= 10
        await asyncio.sleep(0)
        memory.release(size)

    # The small one at the end would fit beside the first, but then the large ones might wait for ever.
    await asyncio.gather(use(1, 6), use(2, 9), use(3, 8), use(4, 1))
    assert order == [1, 2, 3, 4]
    assert memory.held_bytes == 0


async def test_more_than_there_is_goes_alone() -> None:
    memory = Memory(10)
    await memory.reserve(1)
    large = asyncio.ensure_future(memory.reserve(50))
    await asyncio.sleep(0)
    assert not large.done()
    memory.release(1)
    await large
    assert memory.held_bytes == 50


@pytest.mark.parametrize("after_its_turn_came", [False, True])
async def test_who_gives_up_leaves_nothing_behind(after_its_turn_came: bool) -> None:
    memory = Memory(10)
    await memory.reserve(10)
    waiting = asyncio.ensure_future(memory.reserve(10))
    await asyncio.sleep(0)
    if after_its_turn_came:
        memory.release(10)
        waiting.cancel()
    else:
        waiting.cancel()
        await asyncio.sleep(0)
        memory.release(10)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert memory.held_bytes == 0
    await memory.reserve(10)
