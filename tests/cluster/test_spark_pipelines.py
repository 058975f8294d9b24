"""Pipelines on Spark, source and exactly-once sink, on three brokers that are killed, paused and restarted meanwhile:
every record is written once. The queries, and what must be true in the end, are those of tests/spark/kill_scene.py."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Cli
from tests.spark.kill_scene import PARTITIONS, Driver, Scene
from tests.support.trio import IDS, OttlaTrio, require

pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]
SETTINGS = {"zookeeper.session.timeout.ms": "3000", "replica.lag.time.max.ms": "5000"}
TOPICS = {"in": PARTITIONS, "shout-0": 2, "shout-1": 1, "count": 2}


class ClusterScene(Scene):
    """Its broker is three of them. What is killed comes back, and is in sync before the next thing happens."""

    def __init__(self, folder: Path, seed: int, **settings: Any) -> None:
        super().__init__(folder, seed, **settings)
        self.broker = self.trio = OttlaTrio(folder / "trio", SETTINGS)  # type: ignore[assignment]

    def __enter__(self) -> ClusterScene:
        self.trio.__enter__()
        for name, partitions in TOPICS.items():
            self.trio.create(name, partitions)
        self.driver = Driver({**self.settings, "bootstrap": self.trio.bootstrap}, self.folder / "driver.log")
        return self

    def __exit__(self, *_: object) -> None:
        if self.driver.process is not None and self.driver.process.poll() is None:
            self.driver.kill()
        self.trio.__exit__(None, None, None)

    def _kill(self, victim: int) -> None:
        self.trio.nodes[victim].kill()
        time.sleep(self.random.uniform(0.5, 2.0))
        self.trio.nodes[victim].start()
        self.trio.await_in_sync()

    def kill_leader_of_the_source(self) -> None:
        self._kill(self.trio.leader("in", self.random.randrange(PARTITIONS)))

    def kill_leader_of_the_target(self) -> None:
        self._kill(self.trio.leader("count"))

    def kill_coordinator(self) -> None:
        self._kill(self.trio.leader(self.random.choice(["__transaction_state", "__consumer_offsets"]), 0))

    def kill_controller(self) -> None:
        self._kill(self.trio.controller())

    def kill_nobody_but_pause_a_leader(self) -> None:
        """Past its session."""
        node = self.trio.nodes[self.trio.leader("in")]
        node.pause()
        time.sleep(self.trio.session_s + 2)
        node.resume()
        self.trio.await_in_sync()

    def kill_nobody_but_move_leaders(self) -> None:
        """Another replica comes first, and leads."""
        cli = Cli(self.trio.bootstrap)
        for topic in TOPICS:
            first = self.random.randrange(len(IDS))
            order = [*IDS[first:], *IDS[:first]]
            cli.ok("partition", "move", topic, "--to", ",".join(map(str, order)), "--wait", "60")
        cli.ok("partition", "elect")

    def kill_nobody_but_restart_all(self) -> None:
        for node in self.trio.nodes.values():
            node.stop()
            node.start()
            self.trio.await_in_sync()


KINDS = (
    "leader_of_the_source",
    "nobody_but_move_leaders",
    "leader_of_the_target",
    "coordinator",
    "nobody_but_restart_all",
    "controller",
    "nobody_but_pause_a_leader",
    "nobody_but_move_leaders",
)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2))
def test_a_pipeline_writes_every_record_once_whatever_happens_to_the_brokers(tmp_path: Path, seed: int) -> None:
    """Leaders and nothing else in the first run; drivers and workers on Spark's side are killed too in the second."""
    require(OttlaTrio)
    with ClusterScene(tmp_path, seed) as scene:
        of_spark = ["worker", "driver"] if seed else []
        kinds = [*KINDS, *of_spark]
        if seed:
            scene.random.shuffle(kinds)
        scene.storm(kinds, per_second=300)
        assert scene.problems() == []
        assert scene.kills == kinds
