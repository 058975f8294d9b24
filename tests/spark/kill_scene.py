"""The scene of the kills: a broker, a feeder, a driver, and what must be true in the end.

The reference is computed from the numbers that were fed, without Spark.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka

import ottla.spark
from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.cluster import ClusterClient
from tests.spark import topics
from tests.spark.kill_driver import KEYS, QUERIES
from tests.spark.reading import committed_records
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.process import command_of, descendants

PARTITIONS = 2
FED_MAX = 30_000
START_TIMEOUT_S = 120
END_TIMEOUT_S = 240


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Driver:
    """The process that runs the queries, started again when it is killed."""

    def __init__(self, settings: dict[str, Any], log: Path) -> None:
        self._settings = settings
        self._log = log
        self._starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        search_path = [str(REPO_ROOT / "src"), str(REPO_ROOT), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, search_path)),
            "PYSPARK_PYTHON": self._settings.get("python", sys.executable),
        }
        started = self.told("up")
        # Each in turn: executors encode, or the driver whenever rows are few.
        settings = {**self._settings, "encodes_few_rows": self._starts % 2 == 1}
        self._starts += 1
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", settings.get("module", "tests.spark.kill_driver"), json.dumps(settings)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
                cwd=REPO_ROOT,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.told("up") == started:
            assert self.process.poll() is None, f"the driver ended: {self.log_tail()}"
            assert time.monotonic() < deadline, f"the driver did not start: {self.log_tail()}"
            time.sleep(0.05)

    def log_tail(self) -> str:
        return self._log.read_text()[-3000:]

    def forget(self, setting: str) -> None:
        """For the next start."""
        self._settings.pop(setting)

    def change(self, **settings: Any) -> None:
        """For the next start."""
        self._settings |= settings

    def told(self, word: str) -> int:
        return self._log.read_text().splitlines().count(word) if self._log.exists() else 0

    def kill(self) -> None:
        """The driver with its JVM, as when a machine dies."""
        assert self.process is not None
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)

    def workers(self) -> list[int]:
        """Python workers: forked by the daemon, and called like it."""
        assert self.process is not None
        daemons = [one for one in descendants(self.process.pid) if "daemon" in command_of(one)]
        return [one for daemon in daemons for one in children(daemon)]


class Feeder:
    """Writes numbers, evenly to all partitions, until it is told to stop or has written enough.

    Enough: on a busy machine the kills take minutes, and what was fed meanwhile would take as long again to be read.
    """

    def __init__(self, bootstrap: str, per_second: int) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20, "log_level": 0}
        )
        self._per_second = per_second
        self._stopping = threading.Event()
        self.count = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            if self.count < FED_MAX:
                self.feed(self._per_second // 10)

    def feed(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce("in", b"%d" % self.count, partition=self.count % PARTITIONS)
            self.count += 1
        self._producer.poll(0)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


class Scene:
    def __init__(self, folder: Path, seed: int, **settings: Any) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.broker = OttlaProcess(folder / "broker")
        self.settings = {"folder": str(folder), "master": "local[2,8]", **settings}
        self.kills: list[str] = []

    def __enter__(self) -> Scene:
        self.broker.start()
        for name, partitions in (("in", PARTITIONS), ("shout-0", 2), ("shout-1", 1), ("count", 2)):
            topics.create(self.broker.bootstrap, partitions, name=name)
        self.driver = Driver({**self.settings, "bootstrap": self.broker.bootstrap}, self.folder / "driver.log")
        return self

    def __exit__(self, *_: object) -> None:
        if self.driver.process is not None and self.driver.process.poll() is None:
            self.driver.kill()
        self.broker.close()

    def storm(self, kinds: list[str], *, per_second: int = 600, pause_s: tuple[float, float] = (0.3, 1.8)) -> None:
        """Kill these, in this order, at moments that the seed decides; then let everything come to its end."""
        self.driver.start()
        feeder = Feeder(self.broker.bootstrap, per_second)
        self.await_first_batches()
        for kind in kinds:
            time.sleep(self.random.uniform(*pause_s))
            getattr(self, f"kill_{kind}")()
            self.kills.append(kind)
        feeder.stop()
        self.finish(feeder.count)

    def await_first_batches(self) -> None:
        """On a busy machine the kills could else be over before there is anything to lose."""
        deadline = time.monotonic() + START_TIMEOUT_S
        for name in QUERIES:
            while ottla.spark.published(name=name, bootstrap=self.broker.bootstrap) is None:
                assert time.monotonic() < deadline, f"{name} published nothing: {self.driver.log_tail()}"
                time.sleep(0.2)

    def feed(self, numbers: range) -> None:
        feeder = Feeder(self.broker.bootstrap, per_second=0)
        feeder.count = numbers.start
        feeder.feed(len(numbers))
        feeder.stop()

    def await_crash(self) -> None:
        assert self.driver.process is not None
        self.driver.process.wait(180)
        for pid in descendants(self.driver.process.pid):
            os.kill(pid, signal.SIGKILL)

    def kill_driver(self) -> None:
        self.driver.kill()
        self.driver.start()

    def kill_worker(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for pid in self.random.sample(found := self.driver.workers(), len(found)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return
            time.sleep(0.05)
        raise AssertionError("there is no Python worker to kill")

    def kill_broker(self) -> None:
        self.broker.restart(kill=True)

    def finish(self, count: int) -> None:
        """All `count` numbers are fed: wait for the queries, and starting the driver again if it crashed."""
        self.count = count
        per_partition = {str(one): len(range(one, count, PARTITIONS)) for one in range(PARTITIONS)}
        (self.folder / "end.new").write_text(json.dumps(per_partition))
        (self.folder / "end.new").rename(self.folder / "end")
        deadline = time.monotonic() + END_TIMEOUT_S
        while not self.driver.told("done"):
            assert time.monotonic() < deadline, self.driver.log_tail()
            assert self.driver.process is not None
            if self.driver.process.poll() is not None and not self.driver.told("done"):
                self.driver.start()
            time.sleep(0.1)

    # --- what must be true

    def problems(self) -> list[str]:
        """Empty if every number was written once, counted once, and offsets agree."""
        bootstrap = self.broker.bootstrap
        found = []
        for parity in range(2):
            expected = Counter(b"!%d" % number for number in range(parity, self.count, 2))
            written = Counter(value for _, value in committed_records(bootstrap, f"shout-{parity}"))
            if lost := expected - written:
                found.append(f"shout-{parity}: {sum(lost.values())} lost")
            if doubled := written - expected:
                found.append(f"shout-{parity}: {sum(doubled.values())} too many")
        return found + self._count_problems() + self._offset_problems()

    def _count_problems(self) -> list[str]:
        rising: dict[bytes, list[tuple[int, int]]] = {}
        for key, value in committed_records(self.broker.bootstrap, "count"):
            count, total = map(int, value.split())
            rising.setdefault(key, []).append((count, total))
        found = []
        for key in range(KEYS):
            numbers = range(key, self.count, KEYS)
            states = rising.get(b"%d" % key, [(0, 0)])
            if states[-1] != (len(numbers), sum(numbers)):
                found.append(f"count: key {key} ends at {states[-1]}, not {len(numbers), sum(numbers)}")
            if sorted(set(states)) != states:
                found.append(f"count: key {key} was written twice or went back")
        return found

    def _offset_problems(self) -> list[str]:
        with ClusterClient(self.broker.bootstrap) as cluster:
            read = {name: sum(one.offset for one in committed_offsets(cluster, name).values()) for name in QUERIES}
        return [f"group {name} is at {total}, not {self.count}" for name, total in read.items() if total != self.count]
