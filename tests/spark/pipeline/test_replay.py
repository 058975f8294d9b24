"""A batch that runs again sees what it saw the first time, wherever the driver ended before, whatever the table's topic
has come to since. The proof that the check can fail is at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.pipeline.home import Home
from ottla.spark.pipeline.tables.collection import Tables
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.testing import Broker
from tests.spark.pipeline import seams
from tests.spark.pipeline.conftest import Running
from tests.spark.pipeline.replay_scene import ORDERS_PER_BATCH, ReplayScene, joining
from tests.support.kafka_jars import REPO_ROOT


class Crashed(Exception):
    """Nobody knows what it means: the runner starts the query again."""


def scene_of(servers: str, name: str, folder: Path, seed: int = 1) -> ReplayScene:
    scene = ReplayScene(servers, name, Home(folder, name).checkpoint, seed)
    scene.change(30)
    scene.feed(3 * ORDERS_PER_BATCH)
    return scene


def run_with_crashes(
    spark: Any, scene: ReplayScene, folder: Path, monkeypatch: pytest.MonkeyPatch, crashes: dict[str, int], by: str = ""
) -> list[str]:
    """Once through, ended at each of these seams when it is met for the n-th time. Meanwhile the table changes."""
    met: list[str] = []

    def crash_at(seam: str) -> None:
        met.append(seam)
        scene.grow()
        scene.change(25)
        raise Crashed(seam)

    for seam, times in crashes.items():
        seams.install(seam, monkeypatch.setattr, lambda seam=seam: crash_at(seam), times, scene.checkpoint)
    with Running(spark, joining(scene.name, scene.names, by=by), scene.servers, folder, once=True) as run:
        run.wait(600)  # a guard against hanging: it is started again with each crash
    assert run.error is None
    return met


@pytest.mark.parametrize("by", ["", "customer"], ids=["walked", "looked-up"])
def test_a_batch_that_runs_again_sees_the_tables_that_it_saw_before(
    spark: Any, servers: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    scene = scene_of(servers, name, tmp_path)
    crashes = {"after Spark's log and the plan": 1, "after EndTxn": 2, "after the manifest, before Spark's log": 6}
    assert run_with_crashes(spark, scene, tmp_path, monkeypatch, crashes, by) == list(crashes)
    assert scene.problems() == []


@pytest.mark.parametrize("seam", seams.SEAMS)
def test_every_seam_is_a_step_that_there_is(seam: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seams.install(seam, monkeypatch.setattr, lambda: None, 1, tmp_path)


@pytest.mark.slow
def test_the_check_finds_a_table_that_is_read_to_its_present_end_when_a_batch_runs_again(
    spark: Any, servers: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened_without_manifest(self: Tables, checkpoint: Checkpoint, *more: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Checkpoint, "unfinished_batch", lambda self: None)
            really_open(self, checkpoint, *more)

    really_open = Tables.open
    monkeypatch.setattr(Tables, "open", opened_without_manifest)
    scene = scene_of(servers, name, tmp_path)
    run_with_crashes(spark, scene, tmp_path, monkeypatch, {"after EndTxn": 1})
    assert scene.problems()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
@pytest.mark.parametrize("seam", [*seams.SEAMS, *seams.FILES])
def test_a_driver_may_end_between_any_two_steps_of_a_batch(seam: str, tmp_path: Path) -> None:
    """The process is gone, and its JVM with it, twice at the same seam; the table changes all the time."""
    with Broker() as broker:
        scene = scene_of(broker.bootstrap_servers, "replayed", tmp_path, seed=len(seam))
        stop = threading.Event()
        feeder = threading.Thread(target=_change_until, args=(scene, stop))
        feeder.start()
        try:
            for times in (2, 1):
                assert _driver(scene, tmp_path, seam, times) == 9
                scene.grow()
                scene.change(25)
            scene.feed(ORDERS_PER_BATCH)
            assert _driver(scene, tmp_path, None, 0) == 0
        finally:
            stop.set()
            feeder.join()
        assert scene.problems() == []


def _change_until(scene: ReplayScene, stop: threading.Event) -> None:
    while not stop.wait(0.3):
        scene.change(5)


def _driver(scene: ReplayScene, folder: Path, seam: str | None, times: int) -> int:
    settings = {
        "servers": scene.servers,
        "name": scene.name,
        "names": scene.names,
        "folder": str(folder),
        "seam": seam,
        "times": times,
        # Executors encode and send to the spool, or the driver encodes what are few rows.
        # Not the same each time: a batch that runs again is joined with the same rows, however they are found.
        "by": "customer" if times == 2 else "",
        "encodes_few_rows": times == 1 and seam != seams.SENDING,
    }
    search_path = [str(REPO_ROOT / "src"), str(REPO_ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search_path))}
    with (folder / "driver.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.spark.pipeline.replay_driver", json.dumps(settings)]
        return subprocess.run(command, stdout=log, stderr=log, env=environment, cwd=REPO_ROOT, timeout=300).returncode
