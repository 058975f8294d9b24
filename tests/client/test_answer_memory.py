"""Memory of answers is used again, and never while somebody looks at what is in it."""

from __future__ import annotations

import random

from ottla.client.answer_memory import AnswerMemory

MEGABYTE = 1024 * 1024


def test_what_nobody_looks_at_is_used_again() -> None:
    memory = AnswerMemory()
    first = memory.take(4 * MEGABYTE)
    place = first.obj
    del first
    assert memory.take(4 * MEGABYTE - 17).obj is place
    assert memory.take(MEGABYTE).obj is place


def test_what_somebody_looks_at_stays_as_it_is() -> None:
    """Also a part of it, and however many answers come meanwhile."""
    rng = random.Random(7)
    memory = AnswerMemory()
    kept: list[tuple[memoryview, bytes]] = []
    for number in range(200):
        answer = memory.take(rng.choice((10, 100_000, MEGABYTE, 3 * MEGABYTE)))
        answer[:] = bytes([number % 251]) * len(answer)
        if rng.random() < 0.3:
            part = answer[3:9]
            kept.append((part, bytes(part)))
        if len(kept) > 3:
            kept.pop(rng.randrange(len(kept)))
        assert all(part == before for part, before in kept)


def test_very_large_and_very_small_ones_are_not_kept() -> None:
    memory = AnswerMemory()
    for size in (10, 100 * MEGABYTE):
        assert len(memory.take(size)) == size
    assert memory._kept == []
