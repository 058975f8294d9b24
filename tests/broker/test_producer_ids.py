"""Producer ids are handed out once, also to many who ask at the same time."""

from __future__ import annotations

import asyncio

import pytest

from ottla.broker.controller.producer_ids import BLOCK_SIZE, ProducerIds


async def test_ids_come_from_blocks_and_never_twice() -> None:
    blocks: list[int] = []

    async def take_block(count: int) -> int:
        await asyncio.sleep(0.001)
        blocks.append(len(blocks) * count)
        return blocks[-1]

    ids = ProducerIds(take_block)
    taken = await asyncio.gather(*(ids.take() for _ in range(2 * BLOCK_SIZE + 1)))
    assert sorted(taken) == list(range(2 * BLOCK_SIZE + 1))
    assert len(blocks) == 3


async def test_a_block_that_cannot_be_had_is_asked_for_again() -> None:
    answers = iter([OSError("disk"), 5000])

    async def take_block(count: int) -> int:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    ids = ProducerIds(take_block)
    with pytest.raises(OSError, match="disk"):
        await ids.take()
    assert await ids.take() == 5000
