"""Seeded schedules of clients, crashes and time-outs against the coordinator; the invariants hold after every event."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.transactions.simulation import run

BLOCK = 500


@pytest.mark.parametrize("block", range(6))
def test_invariants_hold_after_every_event(block: int) -> None:
    outcomes: Counter[bool] = Counter()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        try:
            system = run(seed)
        except Exception as error:
            raise AssertionError(f"replay with: python -m tests.transactions.simulation {seed}") from error
        outcomes.update(system.decided.values())
    # The schedules are worth something: both outcomes are common.
    assert outcomes[True] > BLOCK and outcomes[False] > BLOCK


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6, 40))
def test_invariants_hold_in_many_more_schedules(block: int) -> None:
    test_invariants_hold_after_every_event(block)
