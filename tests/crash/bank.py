"""Producers that are killed, a broker that is killed, answers that are lost, readers that watch: a bank in a storm."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.transaction_checker import TransactionChecker, entries
from tests.crash.transactional_worker import OFFSET_PARTITION, PARTITIONS, TOPIC, group_of
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.proxy import Proxy
from tests.support.transactional_libraries import committed_offset

PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": "1048576",
}


class Worker(threading.Thread):
    """A producer's process, started again whenever it ends, and the ledger of what it says."""

    def __init__(self, library: str, bootstrap: str, name: str, seed: int, checker: TransactionChecker) -> None:
        super().__init__(name=name, daemon=True)
        self.library, self.bootstrap, self.seed, self.checker = library, bootstrap, seed, checker
        self.stopping = False
        self.starts = 0
        self.last_words = ""
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while not self.stopping:
            self.starts += 1
            first = self.checker.last_number(self.name) + 1
            command = [sys.executable, "-m", "tests.crash.transactional_worker", self.library, self.bootstrap]
            command += [self.name, str(self.seed + self.starts), str(first)]
            search_path = f"{REPO_ROOT / 'src'}{os.pathsep}{REPO_ROOT}"
            environment = os.environ | {"PYTHONPATH": search_path, "PYTHONWARNINGS": "ignore"}
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=REPO_ROOT
            ) as process:
                self._process = process
                assert process.stdout is not None
                for line in process.stdout:
                    if not line.endswith(b"\n"):
                        break  # killed in the middle of a word
                    self._note(line.decode().split())

    def _note(self, words: list[str]) -> None:
        kind = words[0]
        if kind == "begun":
            number, with_offset, *partitions = map(int, words[1:])
            self.checker.begun(entries(self.name, number, partitions), with_offset=bool(with_offset))
        elif kind in ("committed", "aborted"):
            self.checker.ended(self.name, int(words[1]), committed=kind == "committed")
        self.last_words = " ".join(words)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def finish(self) -> None:
        self.stopping = True
        self.kill()
        self.join(60)


class Watcher(threading.Thread):
    """A reader of committed records that is there all the time."""

    def __init__(self, name: str, bootstrap: str, checker: TransactionChecker) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap, self.checker = bootstrap, checker
        self.stopping = False

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.name,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(TOPIC, one, OFFSET_BEGINNING) for one in range(PARTITIONS)])
        while not self.stopping:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.checker.consumed(self.name, message.partition(), message.offset(), message.value())
        consumer.close()

    def finish(self) -> None:
        self.stopping = True
        self.join(30)


class Bank:
    """Everything together. `storm` until enough transactions were begun, then `settle` and ask the checker."""

    def __init__(self, broker: OttlaProcess, proxy: Proxy, workers: Sequence[str], seed: int) -> None:
        self.broker, self.proxy = broker, proxy
        self.rng = random.Random(seed)
        self.checker = TransactionChecker()
        self.kills = 0
        admin = AdminClient({"bootstrap.servers": proxy.address})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        self.workers = [
            Worker(library, proxy.address, f"{library}-{number}", seed * 1000 + number * 100, self.checker)
            for number, library in enumerate(workers)
        ]
        self.watchers = [Watcher(f"watcher-{number}", proxy.address, self.checker) for number in range(2)]
        for one in (*self.workers, *self.watchers):
            one.start()

    def storm(self, transactions: int, timeout_s: float, *, kill_broker: bool = True) -> None:
        deadline = time.monotonic() + timeout_s
        self.proxy.lose_answers(0.02)
        while self.checker.begun_count < transactions:
            assert time.monotonic() < deadline, f"only {self.checker.begun_count}: {self._states()}"
            time.sleep(self.rng.uniform(0.2, 1.0))
            chance = self.rng.random()
            if chance < 0.4:
                self.rng.choice(self.workers).kill()
            elif chance < 0.6 and kill_broker:
                self.broker.kill()
                self.kills += 1
                self.broker.start()

    def settle(self, timeout_s: float = 60.0) -> None:
        """No more faults, no more producers; what is open is aborted by time. Then read everything."""
        self.proxy.lose_answers(0)
        for worker in self.workers:
            worker.finish()
        self._read_log(time.monotonic() + timeout_s)
        for watcher in self.watchers:
            watcher.finish()
        for worker in self.workers:
            offset = committed_offset(self.broker.bootstrap, group_of(worker.name), TOPIC, OFFSET_PARTITION)
            self.checker.group_offset(worker.name, max(0, offset))

    def _read_log(self, deadline: float) -> None:
        """Until the end of all partitions: nothing may hold readers back for longer than the time-out of producers."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "auditor", "enable.auto.commit": False}
        plain = Consumer({**settings, "isolation.level": "read_uncommitted"})  # else it says where readers get to now
        places = [TopicPartition(TOPIC, one) for one in range(PARTITIONS)]
        ends = {one.partition: plain.get_watermark_offsets(one, timeout=30)[1] for one in places}
        plain.close()
        auditor = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
        auditor.assign([TopicPartition(TOPIC, one, OFFSET_BEGINNING) for one in range(PARTITIONS)])
        found: dict[int, dict[int, Any]] = {one: {} for one in range(PARTITIONS)}
        left = set(range(PARTITIONS))
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
        for partition, records in found.items():
            for offset, value in records.items():
                self.checker.log_record(partition, offset, value)

    def _states(self) -> list[str]:
        return [f"{worker.name}: {worker.last_words}" for worker in self.workers]

    def close(self) -> None:
        for one in (*self.workers, *self.watchers):
            one.stopping = True
        for worker in self.workers:
            worker.finish()
        for watcher in self.watchers:
            watcher.finish()


def bank_properties(proxy: Proxy) -> dict[str, str]:
    return PROPERTIES | {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}


def shown(checker: TransactionChecker) -> str:
    found = checker.violations()
    return f"{len(found)} violations in {checker.begun_count} transactions:\n" + "\n".join(map(str, found[:20]))
