"""Producers and consumers that keep going through crashes, and write down in a `Checker` what they were told.

Two libraries that share no code produce idempotently with acks=all and retry for as long as it takes; a consumer group
commits what it has read and goes on from there. What a broker answered is in the ledger before anything else happens.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from ottla.protocol.messages import InitProducerIdRequest
from ottla.testing.checker import Checker, Stamp, stamped
from tests.support.patience import answered
from tests.support.raw_client import RawClient, batch_of

TOPIC = "ledger"
PARTITIONS = 3
VALUE_BYTES = 200
# Longer than any test lets a broker be away.
PATIENCE_MS = 120_000


class Load(threading.Thread):
    """A client in a thread. `finish` ends it and waits; what went wrong in the thread is raised there."""

    def __init__(self, name: str, bootstrap: str, checker: Checker) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.checker = checker
        self.stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.failure = error

    def work(self) -> None:
        raise NotImplementedError

    def finish(self, timeout_s: float = 120) -> None:
        self.stopping.set()
        self.join(timeout_s)
        assert not self.is_alive(), f"{self.name} did not end"
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.join(60)


class Producing(Load):
    """Numbers records per partition, round robin."""

    def __init__(self, name: str, bootstrap: str, checker: Checker, *, pause_s: float = 0.001) -> None:
        super().__init__(name, bootstrap, checker)
        self.pause_s = pause_s
        self._numbers = [0] * PARTITIONS
        self._turn = 0

    def next_stamp(self) -> Stamp:
        partition = self._turn % PARTITIONS
        self._turn += 1
        number = self._numbers[partition]
        self._numbers[partition] += 1
        stamp = Stamp(self.name, partition, number)
        self.checker.sent(stamp)
        return stamp

    def told(self, stamp: Stamp, offset: int | None, error: object | None) -> None:
        if error is None:
            self.checker.acknowledged(stamp, offset)
        else:
            self.checker.given_up(stamp)


class ConfluentProducer(Producing):
    def work(self) -> None:
        from confluent_kafka import Producer

        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": PATIENCE_MS,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }
        producer = Producer(settings, logger=_quiet())
        while not self.stopping.is_set():
            stamp = self.next_stamp()

            def on_delivery(error: Any, message: Any, stamp: Stamp = stamp) -> None:
                self.told(stamp, None if error else message.offset(), error)

            producer.produce(TOPIC, stamped(*stamp, VALUE_BYTES), partition=stamp.partition, on_delivery=on_delivery)
            producer.poll(self.pause_s)
            while len(producer) > 2000 and not self.stopping.is_set():
                producer.poll(0.05)
        left = producer.flush(100)
        assert left == 0, f"{left} records of confluent-kafka were not settled"


class KafkaPythonProducer(Producing):
    def work(self) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=2,
            delivery_timeout_ms=PATIENCE_MS,
            request_timeout_ms=5000,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            retry_backoff_ms=20,
        )
        waiting: list[Any] = []
        while not self.stopping.is_set():
            stamp = self.next_stamp()
            future = producer.send(TOPIC, stamped(*stamp, VALUE_BYTES), partition=stamp.partition)
            future.add_callback(lambda told, stamp=stamp: self.told(stamp, told.offset, None))
            future.add_errback(lambda error, stamp=stamp: self.told(stamp, None, error))
            waiting.append(future)
            time.sleep(self.pause_s)
            waiting = [one for one in waiting if not one.is_done]
            while len(waiting) > 2000 and not self.stopping.is_set():
                time.sleep(0.05)
                waiting = [one for one in waiting if not one.is_done]
        producer.flush(100)
        producer.close(10)


class AioKafkaProducer(Producing):
    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            linger_ms=2,
            request_timeout_ms=5000,
            retry_backoff_ms=50,
        )
        await producer.start()
        waiting: set[asyncio.Future[Any]] = set()
        try:
            while not self.stopping.is_set():
                stamp = self.next_stamp()
                future = await producer.send(TOPIC, stamped(*stamp, VALUE_BYTES), partition=stamp.partition)
                future.add_done_callback(lambda done, stamp=stamp: self._settle(done, stamp))
                waiting = {one for one in (*waiting, future) if not one.done()}
                await asyncio.sleep(self.pause_s)
                while len(waiting) > 500 and not self.stopping.is_set():
                    await asyncio.sleep(0.05)
                    waiting = {one for one in waiting if not one.done()}
            await asyncio.wait_for(producer.flush(), 100)
        finally:
            await producer.stop()

    def _settle(self, done: asyncio.Future[Any], stamp: Stamp) -> None:
        error = done.exception()
        self.told(stamp, None if error else done.result().offset, error)


class OneShotProducer(Producing):
    """Stops when the broker goes: what it was told until then is what counts."""

    def work(self) -> None:
        with RawClient.to(self.bootstrap) as client:
            while not self.stopping.is_set():
                stamp = self.next_stamp()
                try:
                    line = client.produce(TOPIC, batch_of(stamped(*stamp, VALUE_BYTES)), partition=stamp.partition)
                except OSError:
                    return
                self.told(stamp, line.base_offset, line.error_code or None)


class RetryingProducer(Producing):
    """Idempotent in the plainest way: one record at a time, sent again over a new connection until it is answered."""

    def work(self) -> None:
        client = RawClient.to(self.bootstrap)
        answer = client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1), 1)
        assert answer.producer_id >= 0
        while not self.stopping.is_set():
            stamp = self.next_stamp()
            batch = batch_of(
                stamped(*stamp, VALUE_BYTES),
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
                base_sequence=stamp.number,
            )
            line = None
            while line is None:
                try:
                    line = client.produce(TOPIC, batch, partition=stamp.partition)
                except OSError:
                    client = self._connect_again(client)
            self.told(stamp, line.base_offset, line.error_code or None)
        client.close()

    def _connect_again(self, client: RawClient) -> RawClient:
        client.close()
        while True:
            try:
                return RawClient.to(self.bootstrap)
            except OSError:
                time.sleep(0.02)


class GroupConsumer(Load):
    """Reads in a group, and commits every few records; a commit that was answered must not be forgotten."""

    def __init__(self, name: str, bootstrap: str, checker: Checker) -> None:
        super().__init__(name, bootstrap, checker)
        self.committed: dict[int, int] = {}
        self.seen = 0

    def work(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        consumer = Consumer(self._settings(), logger=_quiet())
        consumer.subscribe([TOPIC])
        since_commit = 0
        while not self.stopping.is_set():
            message = consumer.poll(0.1)
            if message is None or message.error():
                continue
            self.checker.consumed(self.name, message.partition(), message.offset(), message.value())
            self.seen += 1
            since_commit += 1
            if since_commit >= 50:
                since_commit = 0
                try:
                    self._note(consumer.commit(asynchronous=False))
                except KafkaException:
                    continue  # not answered: it may count or not
        consumer.close()

    def _note(self, committed: Any) -> None:
        for one in committed or ():
            if one.error is None and one.offset >= 0:
                self.committed[one.partition] = one.offset

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }

    def check_commits(self) -> None:
        """What the group would go on from is not before what it was told."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(self._settings(), logger=_quiet())
        try:
            places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
            for one in answered(lambda: consumer.committed(places, timeout=30)):
                told = self.committed.get(one.partition, -1)
                assert one.offset >= told, f"partition {one.partition}: {told} was committed, {one.offset} is known"
        finally:
            consumer.close()


def read_log(bootstrap: str, checker: Checker, topic: str = TOPIC, partitions: int = PARTITIONS) -> int:
    """Feeds the whole log to the checker; gives how many records it has."""
    count = 0
    with RawClient.to(bootstrap) as client:
        for partition in range(partitions):
            for record in client.read_all(topic, partition=partition):
                checker.log_record(partition, record.offset, record.value)
                count += 1
    return count


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def _quiet() -> logging.Logger:
    """librdkafka complains at length about a broker that is gone; that is the point here."""
    logger = logging.getLogger("crash-tests.librdkafka")
    logger.setLevel(logging.CRITICAL + 1)
    return logger
