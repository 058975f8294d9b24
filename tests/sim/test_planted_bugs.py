"""Each planted bug is found, by a kind of violation that fits it: by a seed that is known to, and by a search."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import pytest

from ottla.testing.simulation.settings import settings_for
from ottla.testing.simulation.world import play
from tests.sim import planted_bugs
from tests.sim.planted_bugs import NEEDS, PLANTS, Plant

SEEDS = 2_000
# What a run that lost its way says when it is not sure why; it is no proof that this bug was found.
LIVENESS = "liveness"

# Seeds by which each was found. What a seed plays changes with the code: the slow search finds others, and says which.
KNOWN: Mapping[Plant, tuple[int, ...]] = {
    planted_bugs.watermark_from_a_stale_epoch: (29, 83, 112, 154),
    planted_bugs.truncation_to_the_watermark: (0, 1, 2),
    planted_bugs.stale_controller_write_accepted: (5, 8, 13),
    planted_bugs.acknowledged_before_it_is_in_sync: (0, 1, 2),
    planted_bugs.election_without_fencing: (0, 3, 5),
    planted_bugs.holes_that_nobody_minds: (0, 24, 37),
}


def _first_found(plant: Plant, seeds: Iterable[int]) -> tuple[int, str] | None:
    for seed in seeds:
        violation = play(seed, settings_for(seed, **NEEDS.get(plant, {})), level=logging.CRITICAL).violation
        if violation is not None and violation.kind != LIVENESS:
            return seed, violation.kind
    return None


@pytest.mark.parametrize("plant", KNOWN, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found_by_a_seed_that_is_known(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert _first_found(plant, KNOWN[plant]) is not None, "search for another seed: pytest -m slow tests/sim"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = _first_found(plant, range(SEEDS))
    assert found is not None, f"not found in {SEEDS} seeds"
    print(f"{plant.__name__}: {found[1]}, by seed {found[0]}")


def test_all_that_are_planted_are_tested() -> None:
    made = {
        name
        for name, value in vars(planted_bugs).items()
        if callable(value) and getattr(value, "__module__", "") == planted_bugs.__name__ and not name.startswith("_")
    }
    assert made == {plant.__name__ for plant in PLANTS} == {plant.__name__ for plant in KNOWN}
