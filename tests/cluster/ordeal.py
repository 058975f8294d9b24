"""Three brokers under load, a fault, and then the question whether the promise was kept.

    with Ordeal(trio, seed=1) as ordeal:
        for fault in (kill_leader, pause_leader): ordeal.suffer(fault)
        ordeal.verdict()

The load: an idempotent producer with acks=all and a consumer group (librdkafka), transactional producers in processes
of their own, a reader of committed records, and where Kafka's jars are Java's VerifiableProducer. All that they were
told is in a ledger. `suffer` does a fault, undoes it, and waits until all replicas are in sync and the load makes
headway; nothing in it depends on how long that takes. The verdict: nothing acknowledged is lost, nothing is there
twice, one order; transactions are all or nothing; no producer gave up; the logs of all replicas are the same bytes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Self

from confluent_kafka import Consumer, TopicPartition

from ottla.testing.checker import Checker
from ottla.testing.records import read_all
from ottla.testing.transaction_checker import TransactionChecker, entries
from tests.cluster.replica_files import differences
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.crash import load, transactional_worker
from tests.crash.bank import Watcher
from tests.crash.load import ConfluentProducer, GroupConsumer
from tests.crash.storm import Worker
from tests.support.patience import answered
from tests.support.transactional_libraries import committed_offset
from tests.support.trio import IDS, Trio

HEADWAY_S_MAX = 180.0
Fault = Callable[["Ordeal"], None]


class Ordeal:
    def __init__(
        self, trio: Trio, seed: int, *, java: bool = False, transactional: Sequence[str] = ("confluent-kafka",)
    ) -> None:
        self.trio = trio
        self.rng = random.Random(seed)
        self.rounds: list[str] = []
        self.ledger = Checker()
        self.bank = TransactionChecker()
        self._java = VerifiableProducer(trio.bootstrap, "java", trio.folder) if java else None
        self._transactional = transactional
        self._seed = seed
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        trio = self.trio
        trio.create(load.TOPIC, load.PARTITIONS)
        trio.create(transactional_worker.TOPIC, transactional_worker.PARTITIONS)
        if self._java is not None:
            trio.create(self._java.topic, 2)
        with ExitStack() as stack:
            self.producer = stack.enter_context(ConfluentProducer("confluent", trio.bootstrap, self.ledger))
            self.consumer = stack.enter_context(GroupConsumer("reader", trio.bootstrap, self.ledger))
            self.workers = [self._worker(number, library) for number, library in enumerate(self._transactional)]
            for worker in self.workers:
                worker.start()
                stack.callback(worker.finish)
            self.watcher = Watcher("watcher", trio.bootstrap, self.bank)
            self.watcher.start()
            stack.callback(self.watcher.finish)
            if self._java is not None:
                stack.enter_context(self._java)
            self.await_headway()
            self._stack = stack.pop_all()
        return self

    def _worker(self, number: int, library: str) -> Worker:
        module = "tests.crash.transactional_worker"
        name, seed = f"{library}-{number}", self._seed * 1000 + number * 100
        return Worker(module, library, self.trio.bootstrap, name, seed, self.bank, self._note)

    def _note(self, producer: str, start: int, words: list[str]) -> None:
        if words[0] == "begun":
            number, with_offset, *partitions = map(int, words[1:])
            self.bank.begun(entries(producer, number, partitions), with_offset=bool(with_offset))
        elif words[0] in ("committed", "aborted"):
            self.bank.ended(producer, int(words[1]), committed=words[0] == "committed")

    def __exit__(self, *_: object) -> None:
        for node in self.trio.nodes.values():
            if node.running:
                node.resume()
        self._stack.close()

    # --- the load

    def await_headway(self, records: int = 50, transactions: int = 2) -> None:
        """Until so many more records were acknowledged and read, and so many more transactions committed."""
        seen = self.consumer.seen
        self.await_acknowledged(records)
        self._await(lambda: self.consumer.seen > seen, "the group does not read on")
        before = self.bank.committed_count
        self._await(lambda: self.bank.committed_count >= before + transactions, "transactions do not go on")
        if self._java is not None:
            java, had = self._java, self._java.acknowledged_count
            self._await(lambda: java.acknowledged_count > had, "Java's producer does not go on")

    def await_acknowledged(self, records: int = 50) -> None:
        """Of the plain producer alone: what goes on while a coordinator may be away."""
        before = self.ledger.acknowledged_count
        self._await(lambda: self.ledger.acknowledged_count >= before + records, "records are not acknowledged")

    def _await(self, is_so: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + HEADWAY_S_MAX
        while not is_so():
            for client in (self.producer, self.consumer):
                assert client.failure is None, client.failure
            said = f"{complaint} after {self.rounds}; {[worker.last_words for worker in self.workers]}"
            assert time.monotonic() < deadline, f"{said}\n{self.trio.logs()}"
            time.sleep(0.02)

    # --- faults

    def suffer(self, fault: Fault) -> None:
        self.rounds.append(fault.__name__)
        fault(self)
        self.trio.await_members()
        self.trio.await_in_sync()
        self.await_headway()

    def pause_a_moment(self) -> None:
        """Faults come at any time."""
        time.sleep(self.rng.uniform(0.0, 0.5))

    # --- the verdict

    def verdict(self) -> None:
        found = self._settle()
        assert not found, "\n".join([f"after {self.rounds}:", *found[:20]])

    def _settle(self) -> list[str]:
        self.producer.finish()
        for worker in self.workers:
            worker.finish()
        if self._java is not None:
            self._java.finish()
        total = 0
        for record in read_all(self.trio.bootstrap, load.TOPIC, committed_only=False):
            self.ledger.log_record(record.partition, record.offset, record.value)
            total += 1
        self._await(lambda: self.consumer.seen >= total, "the group does not read on")
        self.consumer.finish()
        self.consumer.check_commits()
        self._audit_bank()
        found = [str(violation) for violation in (*self.ledger.violations(), *self.bank.violations())]
        found += [f"given up: {stamp}" for stamp in sorted(self.ledger.snapshot()._given_up)]
        if self._java is not None:
            found += self._java.violations(read_all(self.trio.bootstrap, self._java.topic, committed_only=False))
        return found + self._replicas_that_differ()

    def _audit_bank(self) -> None:
        """What a killed producer has left open is aborted by time."""
        topic = transactional_worker.TOPIC
        self._await(lambda: not self._open_transactions(topic), "a transaction stays open")
        for record in read_all(self.trio.bootstrap, topic, committed_only=True):
            self.bank.log_record(record.partition, record.offset, record.value)
        self.watcher.finish()
        for worker in self.workers:
            group = transactional_worker.group_of(worker.name)
            place = (topic, transactional_worker.OFFSET_PARTITION)
            self.bank.group_offset(worker.name, max(0, committed_offset(self.trio.bootstrap, group, *place)))

    def _open_transactions(self, topic: str) -> list[int]:
        """Partitions whose last stable offset is not the high watermark."""
        ends = {}
        for level in ("read_committed", "read_uncommitted"):
            ends[level] = self._ends(topic, transactional_worker.PARTITIONS, level)
        return [number for number, end in ends["read_uncommitted"].items() if ends["read_committed"][number] < end]

    def _ends(self, topic: str, partitions: int, level: str = "read_uncommitted") -> dict[int, int]:
        settings = {"bootstrap.servers": self.trio.bootstrap, "group.id": "ends", "isolation.level": level}
        consumer = Consumer({**settings, "log_level": 0})
        try:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            ends = (answered(partial(consumer.get_watermark_offsets, place, timeout=30))[1] for place in places)
            return dict(zip(range(partitions), ends, strict=True))
        finally:
            consumer.close()

    def _replicas_that_differ(self) -> list[str]:
        self.trio.await_in_sync()
        topics = {load.TOPIC: load.PARTITIONS, transactional_worker.TOPIC: transactional_worker.PARTITIONS}
        found = []
        for topic, partitions in topics.items():
            for number, end in self._ends(topic, partitions).items():
                folders = {broker: self.trio.data_dir(broker) / f"{topic}-{number}" for broker in IDS}
                found += differences(folders, end)
        return found
