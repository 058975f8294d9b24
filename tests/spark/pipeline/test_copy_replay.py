"""A pipeline that only copies, ended between any two steps of a batch: each record is there once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.pipeline.tables.collection import Tables
from ottla.spark.pipeline.tables.table import Table
from ottla.testing import Broker
from tests.spark import topics as kafka
from tests.spark.pipeline import seams
from tests.spark.pipeline.conftest import Running
from tests.spark.pipeline.copy_driver import RECORDS_PER_BATCH, copying
from tests.support.kafka_jars import REPO_ROOT

# A copy has no tables to be read.
SEAMS = [seam for seam, (owner, _, _) in seams.SEAMS.items() if owner not in (Tables, Table)]


class Crashed(Exception):
    """Nobody knows what it means: the runner starts the query again."""


def contents(servers: str, topic: str) -> list[tuple[Any, ...]]:
    """Key, value, time and headers of all records, doubled ones too."""
    return sorted(((row[2], row[3], row[4], row[6]) for row in kafka.consumed(servers, topic)), key=repr)


def test_it_may_end_in_the_middle_of_a_batch(
    spark: Any, servers: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = kafka.create(servers, 2), kafka.create(servers, 3)
    kafka.produce(servers, source, range(3 * RECORDS_PER_BATCH), 2)
    met: list[str] = []

    def crash_at(seam: str) -> None:
        met.append(seam)
        kafka.produce(servers, source, range(1_000 * len(met), 1_000 * len(met) + 15), 2)
        raise Crashed(seam)

    crashes = {"after the spool": 1, "in an open transaction": 2, "after EndTxn": 3}
    for seam, times in crashes.items():
        seams.install(seam, monkeypatch.setattr, lambda seam=seam: crash_at(seam), times, tmp_path)
    made = copying(name, source, target)
    for _ in range(2):  # `once` is what was there when it began
        with Running(spark, made, servers, tmp_path, once=True) as run:
            run.wait(600)
        assert run.error is None
    assert met == list(crashes)
    assert len(contents(servers, target)) == 3 * RECORDS_PER_BATCH + 3 * 15
    assert contents(servers, target) == contents(servers, source)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
@pytest.mark.parametrize("seam", [*SEAMS, *seams.FILES])
def test_a_driver_may_be_killed_between_any_two_steps_of_a_batch(seam: str, tmp_path: Path) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        source, target = kafka.create(servers, 2), kafka.create(servers, 3)
        kafka.produce_everything(servers, source, 2)
        for number, times in enumerate((2, 1)):
            assert _driver(servers, source, target, tmp_path, seam, times) == 9
            kafka.produce(servers, source, range(100 * number, 100 * number + 30), 2)
        assert _driver(servers, source, target, tmp_path, None, 0) == 0
        assert contents(servers, target) == contents(servers, source)


def _driver(servers: str, source: str, target: str, folder: Path, seam: str | None, times: int) -> int:
    settings = {
        "servers": servers,
        "name": "copied",
        "source": source,
        "target": target,
        "folder": str(folder),
        "seam": seam,
        "per_batch": 200,
        "times": times,
        # Tasks read and encode, or the driver does what is little.
        "encodes_few_rows": times == 1 and seam != seams.SENDING,
    }
    search_path = [str(REPO_ROOT / "src"), str(REPO_ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search_path))}
    with (folder / "driver.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.spark.pipeline.copy_driver", json.dumps(settings)]
        return subprocess.run(command, stdout=log, stderr=log, env=environment, cwd=REPO_ROOT, timeout=300).returncode
