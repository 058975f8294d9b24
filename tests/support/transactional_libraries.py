"""Transactional producers of three Python libraries behind one face, and readers of committed records.

`begin`, `send`, `offsets`, `commit`, `abort`: each raises `Fenced` when another producer has taken the transactional
id, and `Failed` when the transaction must be aborted. Both carry what the library said.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.support.patience import answered

CALL_S_MAX = 30.0
# What may be asked again is, for so long: then it hangs, and whoever asks is better off with another producer.
PATIENCE_S = 45.0
# Longer than a coordinator is away when a broker is killed, paused or restarted in a test.
HANGS_AFTER_S = 15.0


class Fenced(Exception):
    """The producer is of no use any more."""


class Failed(Exception):
    """The transaction is to be aborted."""


class TransactionalLibrary:
    name = ""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.bootstrap = bootstrap
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Take the transactional id."""
        raise NotImplementedError

    def begin(self) -> None:
        raise NotImplementedError

    def send(self, topic: str, value: bytes, partition: int = 0, key: bytes | None = None) -> None:
        raise NotImplementedError

    def offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets of a group without members."""
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Leave; what is open stays open."""


# --- confluent-kafka -------------------------------------------------------------------------------------------------


@contextmanager
def _confluent_errors() -> Any:
    try:
        yield
    except KafkaException as raised:
        error = raised.args[0]
        if error.fatal() or "FENCED" in error.name():
            raise Fenced(str(error)) from raised
        raise Failed(str(error)) from raised


def _until_settled(call: Callable[[float], None]) -> None:
    """A call that ran out of time goes on where it was when it is made again; nothing else may be asked meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call(CALL_S_MAX)
        except KafkaException as raised:
            if not raised.args[0].retriable() or time.monotonic() > deadline:
                raise


class ConfluentTransactions(TransactionalLibrary):
    name = "confluent-kafka"

    def open(self) -> None:
        self._is_replaced = False
        self._producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": self.timeout_ms,
                "linger.ms": 1,
                "log_level": 0,
            }
        )
        with _confluent_errors():
            _until_settled(self._producer.init_transactions)

    def begin(self) -> None:
        with _confluent_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0, key: bytes | None = None) -> None:
        with _confluent_errors():
            self._producer.produce(topic, value, key, partition=partition)

    def offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        positions = [TopicPartition(topic, index, offset) for (topic, index), offset in offsets.items()]
        with _confluent_errors():
            self._send_offsets(positions, consumer.consumer_group_metadata())
        consumer.close()

    def _send_offsets(self, positions: list[TopicPartition], group: Any) -> None:
        """Since 2.10 librdkafka waits for ever, whatever its time-out, for a coordinator that was missing in one answer
        to Metadata, as during a restart (its issues 5456 and 5511). Then another producer takes the place of this one,
        which aborts what is open, as a person would do it."""
        failures: list[BaseException] = []
        producer = self._producer

        def send() -> None:
            try:
                producer.send_offsets_to_transaction(positions, group, CALL_S_MAX)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        thread.join(HANGS_AFTER_S)
        if thread.is_alive():
            self.open()
            self._is_replaced = True
            raise Failed("librdkafka waits for a coordinator that it has given up")
        if failures:
            raise failures[0]

    def commit(self) -> None:
        with _confluent_errors():
            _until_settled(self._producer.commit_transaction)

    def abort(self) -> None:
        if self._is_replaced:
            self._is_replaced = False
            return  # by taking the transactional id
        with _confluent_errors():
            _until_settled(self._producer.abort_transaction)

    def flush(self) -> None:
        self._producer.flush(CALL_S_MAX)


# --- kafka-python ----------------------------------------------------------------------------------------------------


@contextmanager
def _kafka_python_errors() -> Any:
    from kafka import errors

    try:
        yield
    except (errors.ProducerFencedError, errors.InvalidProducerEpochError) as raised:
        raise Fenced(repr(raised)) from raised
    except errors.KafkaError as raised:
        if "fatal" in str(raised).lower() or "fenced" in repr(raised).lower():
            raise Fenced(repr(raised)) from raised
        raise Failed(repr(raised)) from raised


class KafkaPythonTransactions(TransactionalLibrary):
    name = "kafka-python"

    def open(self) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            linger_ms=1,
        )
        self._sent: list[Any] = []
        with _kafka_python_errors():
            self._producer.init_transactions()

    def begin(self) -> None:
        with _kafka_python_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0, key: bytes | None = None) -> None:
        with _kafka_python_errors():
            self._sent.append(self._producer.send(topic, value, key, partition=partition))

    def offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        from kafka import OffsetAndMetadata
        from kafka import TopicPartition as Place

        with _kafka_python_errors():
            self._producer.send_offsets_to_transaction(
                {Place(*where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}, group
            )

    def commit(self) -> None:
        with _kafka_python_errors():
            self.flush()
            self._producer.commit_transaction()

    def abort(self) -> None:
        self._sent.clear()
        with _kafka_python_errors():
            self._producer.abort_transaction()

    def flush(self) -> None:
        sent, self._sent = self._sent, []
        with _kafka_python_errors():
            for one in sent:
                one.get(CALL_S_MAX)

    def close(self) -> None:
        self._producer.close(1)


# --- aiokafka --------------------------------------------------------------------------------------------------------


class LoopThread:
    """An event loop of its own for a library that needs one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any], timeout_s: float = CALL_S_MAX) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@contextmanager
def _aiokafka_errors() -> Any:
    from aiokafka import errors

    try:
        yield
    except errors.ProducerFenced as raised:
        raise Fenced(repr(raised)) from raised
    except (errors.KafkaError, errors.IllegalOperation) as raised:
        raise Failed(repr(raised)) from raised
    except AssertionError as raised:
        # Its sender learned in the background that it is fenced: what is asked of it then meets its own assertion.
        if "FATAL_ERROR" not in str(raised):
            raise
        raise Failed(repr(raised)) from raised


class AioKafkaTransactions(TransactionalLibrary):
    name = "aiokafka"

    def open(self) -> None:
        self._thread = LoopThread()
        with _aiokafka_errors():
            self._thread.run(self._open())

    async def _open(self) -> None:
        from aiokafka import AIOKafkaProducer

        self._producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            linger_ms=1,
        )
        await self._producer.start()

    def _do(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        with _aiokafka_errors():
            return self._thread.run(work())

    def begin(self) -> None:
        self._do(lambda: self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0, key: bytes | None = None) -> None:
        self._do(lambda: self._producer.send(topic, value, key, partition=partition))

    def offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        from aiokafka import TopicPartition as Place

        wanted = {Place(*where): offset for where, offset in offsets.items()}
        self._do(lambda: self._producer.send_offsets_to_transaction(wanted, group))

    def commit(self) -> None:
        self._do(lambda: self._producer.commit_transaction())

    def abort(self) -> None:
        self._do(lambda: self._producer.abort_transaction())

    def flush(self) -> None:
        self._do(lambda: self._producer.flush())

    def close(self) -> None:
        try:
            self._thread.run(self._producer.stop(), 10)
        except Exception:  # it may be fenced, or have a transaction open
            pass
        self._thread.close()


TRANSACTIONAL: dict[str, type[Any]] = {
    one.name: one for one in (ConfluentTransactions, KafkaPythonTransactions, AioKafkaTransactions)
}


# --- reading ---------------------------------------------------------------------------------------------------------


class Reader:
    """A consumer of given partitions from the start on, by confluent-kafka."""

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int] = (0,), *, committed: bool = True) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"reader-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        self._partitions = list(partitions)
        self._consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions])
        self.values: dict[int, list[bytes]] = {one: [] for one in partitions}

    def until_end(self, timeout_s: float = 120.0) -> dict[int, list[bytes]]:
        """All there is to read now, by partition. To be called once: the end of a partition is told once."""
        left = set(self._partitions)
        deadline = time.monotonic() + timeout_s
        while left and time.monotonic() < deadline:
            left.discard(self._take())
        assert not left, f"no end of {left}"
        return self.values

    def until(self, count: int, timeout_s: float = 30.0) -> dict[int, list[bytes]]:
        """So many records, or as many as come in time."""
        deadline = time.monotonic() + timeout_s
        while sum(map(len, self.values.values())) < count and time.monotonic() < deadline:
            self._take()
        return self.values

    def _take(self) -> int | None:
        """One message, if there is one; the partition if this is its end."""
        message = self._consumer.poll(0.2)
        if message is None:
            return None
        if message.error() is None:
            self.values[message.partition()].append(message.value())
        elif message.error().name() == "_PARTITION_EOF":
            return int(message.partition())
        return None

    def close(self) -> None:
        self._consumer.close()


def read_values(bootstrap: str, topic: str, partitions: Sequence[int] = (0,), *, committed: bool = True) -> list[bytes]:
    """What is there now, partition by partition."""
    reader = Reader(bootstrap, topic, partitions, committed=committed)
    try:
        return [value for one in reader.until_end().values() for value in one]
    finally:
        reader.close()


def committed_offset(bootstrap: str, group: str, topic: str, partition: int = 0) -> int:
    """Without waiting for open transactions, as a consumer of committed records would."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_uncommitted"}
    consumer = Consumer({**settings, "log_level": 0})
    (found,) = answered(lambda: consumer.committed([TopicPartition(topic, partition)], timeout=CALL_S_MAX))
    consumer.close()
    return int(found.offset)
