"""A bank in a storm: producers book money from account to account, readers of committed records watch all the time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from ottla.testing.transaction_checker import TransactionChecker, entries
from tests.crash.storm import Storm
from tests.crash.transactional_worker import OFFSET_PARTITION, PARTITIONS, TOPIC, group_of
from tests.support.brokers import OttlaProcess
from tests.support.proxy import Proxy
from tests.support.transactional_libraries import committed_offset


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


class Bank(Storm):
    topic = TOPIC
    partitions = PARTITIONS
    worker_module = "tests.crash.transactional_worker"

    def __init__(self, broker: OttlaProcess, proxy: Proxy, workers: Sequence[str], seed: int) -> None:
        self.checker = TransactionChecker()
        super().__init__(broker, proxy, workers, seed, self.checker)
        self.watchers = [Watcher(f"watcher-{number}", proxy.address, self.checker) for number in range(2)]
        for one in self.watchers:
            one.start()

    def note(self, producer: str, start: int, words: list[str]) -> None:
        kind = words[0]
        if kind == "begun":
            number, with_offset, *partitions = map(int, words[1:])
            self.checker.begun(entries(producer, number, partitions), with_offset=bool(with_offset))
        elif kind in ("committed", "aborted"):
            self.checker.ended(producer, int(words[1]), committed=kind == "committed")

    def audit(self, deadline: float) -> None:
        for partition, records in self.read_log(deadline).items():
            for offset, value in records.items():
                self.checker.log_record(partition, offset, value)
        for watcher in self.watchers:
            watcher.finish()
        for worker in self.workers:
            offset = committed_offset(self.broker.bootstrap, group_of(worker.name), TOPIC, OFFSET_PARTITION)
            self.checker.group_offset(worker.name, max(0, offset))

    def close(self) -> None:
        super().close()
        for watcher in self.watchers:
            watcher.finish()
