"""Random histories of a cluster against a ghost that knows who has all committed records.

A failing seed is replayed by `run(seed)`; the end of its transcript is in the error. The second half plants bugs, each
of which must be found: a test of the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.controller import broker_changes, isr_changes, settling
from ottla.controller.standing import Standing
from tests.controller.model.ghost import Violation
from tests.controller.model.world import World

SEEDS, SEEDS_SLOW, SEEDS_UNTIL_FOUND = 2000, 60_000, 1000


def run(seed: int, steps: int = 100) -> World:
    world = World(seed)
    try:
        world.run(steps)
    except Violation as violation:
        violation.add_note(f"seed {seed}\n" + "\n".join(world.transcript[-60:]))
        raise
    return world


def play(seeds: range) -> None:
    committed = lost = 0
    for seed in seeds:
        world = run(seed)
        committed += sum(len(ghost.committed) for ghost in world.ghosts.values())
        lost += sum(ghost.allowed_losses for ghost in world.ghosts.values())
    assert committed > len(seeds), "the histories commit records"
    assert lost > 0, "and reach losses that are allowed"


def test_no_committed_record_is_lost_and_no_stale_epoch_changes_anything() -> None:
    play(range(SEEDS))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_same_for_long() -> None:
    play(range(SEEDS, SEEDS + SEEDS_SLOW))


# --- planted bugs

Plant = Callable[[pytest.MonkeyPatch], None]


def eligible_though_records_may_be_lost(patch: pytest.MonkeyPatch) -> None:
    change_standing(patch, lost=frozenset())


def an_empty_disk_is_taken_for_the_old_one(patch: pytest.MonkeyPatch) -> None:
    change_standing(patch, missing={})


def in_sync_by_a_registration_of_before(patch: pytest.MonkeyPatch) -> None:
    change_standing(patch, renewed=frozenset())


def change_standing(patch: pytest.MonkeyPatch, **wrong: Any) -> None:
    right = broker_changes.standing

    def changed(*args: Any) -> Standing:
        return replace(right(*args), **wrong)

    patch.setattr(broker_changes, "standing", changed)


def a_stale_partition_epoch_is_accepted(patch: pytest.MonkeyPatch) -> None:
    accept(patch, ErrorCode.INVALID_UPDATE_VERSION)


def a_stale_leader_epoch_is_accepted(patch: pytest.MonkeyPatch) -> None:
    accept(patch, ErrorCode.FENCED_LEADER_EPOCH)


def accept(patch: pytest.MonkeyPatch, code: ErrorCode) -> None:
    right = isr_changes._fault

    def fault(*args: Any) -> ErrorCode | None:
        found = right(*args)
        return None if found is code else found

    patch.setattr(isr_changes, "_fault", fault)


def any_registration_may_join(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(isr_changes, "_may_join", lambda image, partition, leader, member, *rest: member in image.brokers)


def eligible_while_records_are_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "effective_min_insync", lambda min_insync, partition: min_insync + 1)


@pytest.mark.parametrize(
    "plant",
    [
        eligible_though_records_may_be_lost,
        an_empty_disk_is_taken_for_the_old_one,
        in_sync_by_a_registration_of_before,
        a_stale_partition_epoch_is_accepted,
        a_stale_leader_epoch_is_accepted,
        any_registration_may_join,
        eligible_while_records_are_committed,
    ],
)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violation):
        for seed in range(SEEDS_UNTIL_FOUND):
            run(seed)
