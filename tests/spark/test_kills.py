"""Exactly once while the driver, Python workers and the broker are killed; and the proof that the check can fail."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.spark.kill_driver import QUERIES
from tests.spark.kill_scene import Scene

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]


@pytest.mark.timeout(900)  # each wait has a limit of its own, and a busy machine needs most of them
@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path, rounds: int) -> None:
    kinds = ["worker", "broker", "driver"] * rounds
    with Scene(tmp_path, seed=1) as scene:
        scene.storm(kinds)
        assert scene.problems() == []
        assert scene.kills == kinds


@pytest.mark.slow  # the same within one process is in test_write_stream.py
@pytest.mark.parametrize("without_marker", [False, True], ids=["with the marker", "without the marker"])
def test_a_crash_between_the_brokers_commit_and_sparks_doubles_nothing_thanks_to_the_marker(
    tmp_path: Path, without_marker: bool
) -> None:
    with Scene(tmp_path, seed=2, crash_after=len(QUERIES), without_marker=without_marker) as scene:
        scene.driver.start()
        scene.feed(range(1_500))
        scene.await_crash()
        scene.driver.forget("crash_after")
        # There is more to do: a query that has read everything would end before it runs the last batch again.
        scene.feed(range(1_500, 2_000))
        scene.driver.start()
        scene.finish(2_000)
        if without_marker:
            assert any("too many" in problem or "twice" in problem for problem in scene.problems())
        else:
            assert scene.problems() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_doubled_by_many_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kinds = chance.choices(["worker", "broker", "driver"], [4, 4, 2], k=30)
    with Scene(tmp_path, seed=seed) as scene:
        scene.storm(kinds, per_second=400)
        assert scene.problems() == []
