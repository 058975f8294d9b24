"""Consumers of three Python clients as members of a group, each in a thread of its own:

member = ConfluentMember(bootstrap, "group", ["topic"], protocol="consumer")
member.owned            # {(topic, partition), ...} as its own library sees it
member.values           # what it has read
member.stop()           # leaves
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

Partition = tuple[str, int]


class Member:
    """Polls until it is stopped. What it reads is kept in order and committed as it goes.

    A commit that falls into a rebalance is refused; whoever gets the partition next reads those records again.
    """

    kind = ""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **options: Any) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.topics = list(topics)
        self.options = options
        self.owned: set[Partition] = set()
        self.values: list[bytes] = []
        # Every change the library told of: ("assigned" or "revoked", partitions).
        self.events: list[tuple[str, set[Partition]]] = []
        self.error: BaseException | None = None
        self._stopping = threading.Event()
        self._leaves = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.consume()
        except BaseException as error:
            self.error = error

    def consume(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error


class ConfluentMember(Member):
    kind = "confluent-kafka"

    def consume(self) -> None:
        from confluent_kafka import Consumer

        protocol = self.options.get("protocol", "classic")
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "client.id": self.kind,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.protocol": protocol,
            "topic.metadata.refresh.interval.ms": 500,
            "fetch.wait.max.ms": 50,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
            settings["partition.assignment.strategy"] = self.options.get("strategy", "range")
        if "instance" in self.options:
            settings["group.instance.id"] = self.options["instance"]
        self.consumer = consumer = Consumer(settings)

        def changed(what: str) -> Callable[[Any, Any], None]:
            return lambda _, partitions: self.events.append((what, {(one.topic, one.partition) for one in partitions}))

        consumer.subscribe(
            self.topics, on_assign=changed("assigned"), on_revoke=changed("revoked"), on_lost=changed("lost")
        )
        while not self._stopping.is_set():
            message = consumer.poll(0.05)
            self.owned = {(one.topic, one.partition) for one in consumer.assignment()}
            if message is not None and message.error() is None:
                self.values.append(message.value())
                consumer.commit(message, asynchronous=True)
        consumer.close()
        self.owned = set()


class KafkaPythonMember(Member):
    kind = "kafka-python"

    def consume(self) -> None:
        from kafka import KafkaConsumer
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.errors import KafkaError

        consumer = KafkaConsumer(
            *self.topics,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            client_id=self.kind,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
            partition_assignment_strategy=[RangePartitionAssignor],
            group_instance_id=self.options.get("instance"),
        )
        while not self._stopping.is_set():
            # Polled for less, kafka-python 3.0 stops for good in one of ten first rebalances (with Kafka as well).
            try:
                found = consumer.poll(timeout_ms=300)
            except KafkaError:
                continue  # the broker is restarting
            self.owned = {(one.topic, one.partition) for one in consumer.assignment()}
            self.values += [one.value for records in found.values() for one in records]
            if found:
                with suppress(KafkaError):
                    consumer.commit()
        consumer.close(autocommit=False)
        self.owned = set()


class AioKafkaMember(Member):
    kind = "aiokafka"

    def consume(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.errors import KafkaError

        consumer = AIOKafkaConsumer(
            *self.topics,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            client_id=self.kind,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
            partition_assignment_strategy=(RangePartitionAssignor,),
            group_instance_id=self.options.get("instance"),
        )
        await consumer.start()
        while not self._stopping.is_set():
            found = await consumer.getmany(timeout_ms=50)
            self.owned = {(one.topic, one.partition) for one in consumer.assignment()}
            self.values += [one.value for records in found.values() for one in records]
            if found:
                with suppress(KafkaError):
                    await consumer.commit()
        await consumer.stop()
        self.owned = set()


class Members:
    """Those a test has started; whatever happens, none stays behind."""

    def __init__(self) -> None:
        self._all: list[Member] = []

    def start(self, kind: type[Member], *arguments: Any, **options: Any) -> Member:
        member = kind(*arguments, **options)
        self._all.append(member)
        return member

    def stop_all(self) -> None:
        for member in self._all:
            member._stopping.set()
        for member in self._all:
            member._thread.join(30)


def eventually(check: Callable[[], object], what: Callable[[], object], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)
