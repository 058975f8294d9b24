"""kill -9 of a worker in the middle of its rounds: neither its source nor its sink loses or doubles anything."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.connect.ordeal import endure
from tests.support.brokers import OttlaProcess

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.mark.timeout(900)
def test_a_worker_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with OttlaProcess(tmp_path / "broker", SETTINGS) as broker:
        print(endure(broker.bootstrap, tmp_path, kills=1, seed=18))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_thirty_kills(tmp_path: Path) -> None:
    with OttlaProcess(tmp_path / "broker", SETTINGS) as broker:
        print(endure(broker.bootstrap, tmp_path, kills=32, seed=2026))
