"""A real cluster whose executors have never heard of Ottla: source and sink work, and executors may be killed."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.kill_scene import Feeder, Scene
from tests.support.spark_cluster import WORKERS, SparkCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[tuple[Scene, SparkCluster]]:
    conf = {
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.task.maxFailures": "20",
        # Executors are killed here all the time: no machine is to be given up for it.
        "spark.deploy.maxExecutorRetries": "-1",
    }
    with (
        SparkCluster(tmp_path / "cluster") as cluster,
        Scene(tmp_path / "scene", seed=3, master=cluster.master, python=str(cluster.python), conf=conf) as scene,
    ):
        yield scene, cluster


def kill_executor(scene: Scene, cluster: SparkCluster) -> None:
    deadline = time.monotonic() + 60
    while not (found := cluster.executors()):
        assert time.monotonic() < deadline, "there is no executor"
        time.sleep(0.1)
    os.kill(scene.random.choice(found), signal.SIGKILL)
    scene.kills.append("executor")


def storm(scene: Scene, cluster: SparkCluster, kills: int) -> None:
    scene.driver.start()
    feeder = Feeder(scene.broker.bootstrap, per_second=200)
    scene.await_first_batches()
    for _ in range(kills):
        kill_executor(scene, cluster)
        time.sleep(scene.random.uniform(1.0, 4.0))
    feeder.stop()
    scene.finish(feeder.count)
    assert scene.problems() == []
    assert cluster.executors_started() > WORKERS, "no executor was started in place of one that was killed"


@pytest.mark.slow  # without kills: pipeline/test_on_a_cluster.py
def test_many_killed_executors_lose_nothing(scene: tuple[Scene, SparkCluster]) -> None:
    storm(*scene, kills=20)
