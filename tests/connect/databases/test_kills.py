"""kill -9 of whatever takes part in carrying rows from a database through topics into tables: nothing is lost, doubled
or out of order."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.connect.databases.ordeal import VICTIMS, endure
from tests.support.databases import Mariadb, Postgres

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.timeout(7200),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]


KILLS = 18  # with each database: together more than thirty


def test_nothing_is_lost_or_doubled_with_postgres(own_postgres: Postgres, tmp_path: Path) -> None:
    _survives(own_postgres, tmp_path, seed=18)


def test_nothing_is_lost_or_doubled_with_mariadb(own_mariadb: Mariadb, tmp_path: Path) -> None:
    _survives(own_mariadb, tmp_path, seed=19)


def _survives(server: Postgres | Mariadb, folder: Path, seed: int) -> None:
    kills = endure(server, folder, KILLS, seed)
    assert kills.total() == KILLS >= 15 and set(kills) == set(VICTIMS), kills
