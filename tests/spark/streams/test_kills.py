"""Exactly once for a topology with a windowed aggregate, a join and a processor with timers, under kills of the driver,
of Python workers and of the broker: results and state are those of a run that nobody disturbed."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.streams import serdes
from tests.spark import kill_scene, topics
from tests.spark.kill_scene import PARTITIONS, Feeder, Scene
from tests.spark.reading import committed_records
from tests.spark.streams.killed_topology import APPLICATION, KEYS, WINDOW_MS, totals_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]


class StreamsScene(Scene):
    def __enter__(self) -> StreamsScene:
        self.broker.start()
        for name in ("in", "counts", "pairs", "totals"):
            topics.create(self.broker.bootstrap, PARTITIONS, name=name)
        settings = {**self.settings, "bootstrap": self.broker.bootstrap, "module": "tests.spark.streams.kill_driver"}
        self.driver = kill_scene.Driver(settings, self.folder / "driver.log")
        return self

    def await_first_batches(self) -> None:
        deadline = time.monotonic() + kill_scene.START_TIMEOUT_S
        while ottla.spark.published(name=APPLICATION, bootstrap=self.broker.bootstrap) is None:
            assert time.monotonic() < deadline, self.driver.log_tail()
            time.sleep(0.2)

    def finish(self, count: int) -> None:
        """All is fed: wait until nothing is lacking, then see that nothing is too much either."""
        self.count = count
        deadline = time.monotonic() + kill_scene.END_TIMEOUT_S
        while lacking := self.problems():
            assert time.monotonic() < deadline, (lacking[:3], self.driver.log_tail())
            assert self.driver.process is not None and self.driver.process.poll() is None, self.driver.log_tail()
            time.sleep(1)
        time.sleep(2)
        self.driver.kill()

    def written(self, topic: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for key, value in committed_records(self.broker.bootstrap, topic):
            found[key.decode()].append(serdes.integer.deserialize(topic, value))
        return found

    def problems(self) -> list[str]:
        return [*self._counts(), *self._pairs(), *self._totals()]

    def _counts(self) -> list[str]:
        expected = Counter(f"{number % KEYS}@{number // WINDOW_MS * WINDOW_MS}" for number in range(self.count))
        wanted: dict[str, list[int]] = {key: list(range(1, count + 1)) for key, count in expected.items()}
        return _differences("counts", self.written("counts"), wanted)

    def _pairs(self) -> list[str]:
        wanted = {str(number // 2): [2 * number + 1] for number in range(0, self.count - self.count % 2, 2)}
        return _differences("pairs", self.written("pairs"), wanted)

    def _totals(self) -> list[str]:
        written: dict[str, list[int]] = defaultdict(list)
        kept: dict[str, int] = {}
        for partition in range(PARTITIONS):
            records, state = totals_of(partition, range(partition, self.count, PARTITIONS))
            for key, total in records:
                written[key].append(total)
            kept |= state
        log = {key: values[-1] for key, values in self.written(f"{APPLICATION}-totals-changelog").items()}
        problems = _differences("totals", self.written("totals"), written)
        return problems if log == kept else [*problems, "the state of the processor is another"]


def _differences(topic: str, found: dict[str, list[int]], wanted: dict[str, Any]) -> list[str]:
    return [
        f"{topic} {key}: {found.get(key, [])[-3:]} for {wanted.get(key, [])[-3:]}"
        for key in sorted({*found, *wanted})
        if found.get(key, []) != wanted.get(key, [])
    ]


def storm(folder: Path, seed: int, kinds: list[str], **pace: Any) -> None:
    with StreamsScene(folder, seed=seed) as scene:
        scene.storm(kinds, **pace)
        assert scene.problems() == []
        assert scene.kills == kinds


@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    storm(tmp_path, 1, ["worker", "driver"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(11, 16))
def test_nothing_is_lost_or_doubled_by_ten_kills(seed: int, tmp_path: Path) -> None:
    """Fifty in five storms: each with moments of its own, and soon over."""
    kinds = random.Random(seed).choices(["worker", "broker", "driver"], [4, 3, 3], k=10)
    storm(tmp_path, seed, kinds, per_second=300)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_is_lost_or_doubled_by_fifty_kills(tmp_path: Path) -> None:
    kinds = random.Random(5).choices(["worker", "broker", "driver"], [4, 3, 3], k=50)
    storm(tmp_path, 5, kinds, per_second=200)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_state_is_whole_on_another_number_of_cores(tmp_path: Path) -> None:
    with StreamsScene(tmp_path, seed=3, master="local[2,8]") as scene:
        feeder = Feeder(scene.broker.bootstrap, per_second=0)
        feeder.feed(3_000)
        feeder.stop()
        scene.driver.start()
        scene.await_first_batches()
        scene.finish(3_000)
        scene.driver.change(master="local[4,8]")
        again = Feeder(scene.broker.bootstrap, per_second=0)
        again.count = 3_000
        again.feed(3_000)
        again.stop()
        scene.driver.start()
        scene.finish(6_000)
