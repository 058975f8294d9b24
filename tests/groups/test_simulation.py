"""Thousands of random schedules against the invariants; a seed that fails is one line to replay (see `sim`)."""

from __future__ import annotations

import pytest

from tests.groups.sim.world import run_seed

# 25 blocks of 100 seeds: about 30 s on one core.
BLOCK = 100


@pytest.mark.parametrize("block", range(25))
def test_groups_keep_their_promises(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        run_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100, 300))
def test_groups_keep_their_promises_in_longer_schedules(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        run_seed(seed, steps=120)


# Schedules that once revealed a mistake, with the mistake.
REVEALING = [
    (477, 40, "a fenced classic member came back into a consumer group with the partitions it had"),
    (241, 40, "a downgrade that became durable late started a rebalance that was running already"),
    (442, 40, "an answer rested on records that were not durable yet"),
    (744, 40, "a static member inherited the topics of the one whose place it took"),
    (1156, 40, "after a downgrade and an upgrade a partition was booked on the member that was to get it"),
    (10570, 120, "what an upgrade had left to do was done late, to a group that had been made anew since"),
    (1478, 40, "topics that came while an earlier change was being stored were overlooked"),
]


@pytest.mark.parametrize(("seed", "steps", "mistake"), REVEALING)
def test_schedules_that_revealed_a_mistake(seed: int, steps: int, mistake: str) -> None:
    run_seed(seed, steps)
