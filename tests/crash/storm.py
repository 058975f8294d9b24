"""Transactional producers that are killed, a broker that is killed, answers that are lost: what all storms have."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.checker import Violation
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.proxy import Proxy

PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": "1048576",
}


class StormChecker(Protocol):
    @property
    def begun_count(self) -> int: ...

    @property
    def committed_count(self) -> int: ...

    def last_number(self, producer: str) -> int: ...

    def violations(self) -> list[Violation]: ...


class Worker(threading.Thread):
    """A producer's process, started again whenever it ends. What it says goes to `note`, with the number of its start.

    The process is `python -m MODULE LIBRARY BOOTSTRAP NAME SEED FIRST_NUMBER`.
    """

    def __init__(
        self,
        module: str,
        library: str,
        bootstrap: str,
        name: str,
        seed: int,
        checker: StormChecker,
        note: Callable[[str, int, list[str]], None],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.module, self.library, self.bootstrap, self.seed = module, library, bootstrap, seed
        self.checker, self.note = checker, note
        self.stopping = False
        self.starts = 0
        self.last_words = ""
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while not self.stopping:
            self.starts += 1
            first = self.checker.last_number(self.name) + 1
            command = [sys.executable, "-m", self.module, self.library, self.bootstrap]
            command += [self.name, str(self.seed + self.starts), str(first)]
            search_path = f"{REPO_ROOT / 'src'}{os.pathsep}{REPO_ROOT}"
            environment = os.environ | {"PYTHONPATH": search_path, "PYTHONWARNINGS": "ignore"}
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=REPO_ROOT
            ) as process:
                self._process = process
                if self.stopping:  # said between the last look and now: `finish` has killed the one before
                    process.kill()
                assert process.stdout is not None
                for line in process.stdout:
                    if not line.endswith(b"\n"):
                        break  # killed in the middle of a word
                    words = line.decode().split()
                    self.note(self.name, self.starts, words)
                    self.last_words = " ".join(words)[:200]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def finish(self) -> None:
        self.stopping = True
        self.kill()
        self.join(60)
        assert not self.is_alive(), f"{self.name} goes on"


class Storm:
    """`blow` until enough was tried, then `settle` and ask the checker."""

    topic = ""
    partitions = 0
    worker_module = ""

    def __init__(
        self, broker: OttlaProcess, proxy: Proxy, workers: Sequence[str], seed: int, checker: StormChecker
    ) -> None:
        self.broker, self.proxy = broker, proxy
        self.rng = random.Random(seed)
        self.kills = self.client_kills = 0
        self._checker = checker
        admin = AdminClient({"bootstrap.servers": proxy.address})
        admin.create_topics([NewTopic(self.topic, self.partitions, 1)])[self.topic].result(30)
        self.workers = [
            Worker(
                self.worker_module,
                library,
                proxy.address,
                f"{library}-{number}",
                seed * 1000 + number * 100,
                checker,
                self.note,
            )
            for number, library in enumerate(workers)
        ]
        for one in self.workers:
            one.start()

    def note(self, producer: str, start: int, words: list[str]) -> None:
        raise NotImplementedError

    def blow(self, transactions: int, timeout_s: float, *, broker_kills: int = 0, lose: float = 0.02) -> None:
        """Until so many transactions were begun and the broker was killed so often."""
        deadline = time.monotonic() + timeout_s
        self.proxy.lose_answers(lose)
        while self._checker.begun_count < transactions or self.kills < broker_kills:
            told = f"only {self._checker.begun_count} transactions, {self.kills} kills: {self._states()}"
            assert time.monotonic() < deadline, told
            time.sleep(self.rng.uniform(0.2, 1.0))
            chance = self.rng.random()
            if chance < 0.4:
                self.rng.choice(self.workers).kill()
                self.client_kills += 1
            elif chance < 0.6 and broker_kills:
                self.broker.kill()
                self.kills += 1
                self.broker.start()

    def settle(self, timeout_s: float = 60.0) -> None:
        """No more faults, no more producers; what is open is aborted by time. Then read everything."""
        self.proxy.lose_answers(0)
        for worker in self.workers:
            worker.finish()
        self.audit(time.monotonic() + timeout_s)

    def audit(self, deadline: float) -> None:
        raise NotImplementedError

    def read_log(self, deadline: float) -> dict[int, dict[int, Any]]:
        """Until the end of all partitions: nothing may hold readers back for longer than the time-out of producers."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "auditor", "enable.auto.commit": False}
        plain = Consumer({**settings, "isolation.level": "read_uncommitted"})  # else it says where readers get to now
        places = [TopicPartition(self.topic, one) for one in range(self.partitions)]
        ends = {one.partition: plain.get_watermark_offsets(one, timeout=30)[1] for one in places}
        plain.close()
        auditor = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
        auditor.assign([TopicPartition(self.topic, one, OFFSET_BEGINNING) for one in range(self.partitions)])
        found: dict[int, dict[int, Any]] = {one: {} for one in range(self.partitions)}
        left = set(range(self.partitions))
        while left:
            assert time.monotonic() < deadline, f"readers cannot get to the end of {left}"
            message = auditor.poll(0.5)
            if message is None:
                continue
            partition = message.partition()
            if message.error() is None:
                found[partition][message.offset()] = message.value()
            elif message.error().name() == "_PARTITION_EOF" and message.offset() >= ends[partition]:
                left.discard(partition)
        auditor.close()
        return found

    def _states(self) -> list[str]:
        return [f"{worker.name}: {worker.last_words}" for worker in self.workers]

    def close(self) -> None:
        for one in self.workers:
            one.stopping = True
        for worker in self.workers:
            worker.finish()


def storm_properties(proxy: Proxy) -> dict[str, str]:
    return PROPERTIES | {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}


def shown(checker: StormChecker) -> str:
    found = checker.violations()
    return f"{len(found)} violations in {checker.begun_count} transactions:\n" + "\n".join(map(str, found[:20]))
