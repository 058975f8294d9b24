"""Four Kafka clients behind one small face, so that a test can name any pair of them.

Each reads and writes through its own library or program, with its own protocol versions and defaults. Records are
(key, value, headers) triples; `kcat` sends one record per run, the others a batch.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

Headers = tuple[tuple[str, bytes | None], ...]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MAX_BYTES = 20_000_000


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = 0
    timestamp: int | None = None


class Got(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class ClientLibrary:
    """What every client can do here. `read` returns once `count` records have come."""

    name = ""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def send(self, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False) -> None:
        raise NotImplementedError

    def read(self, topic: str, count: int, partitions: Sequence[int] = (0,), offset: int = 0) -> list[Got]:
        raise NotImplementedError

    def offset_at(self, topic: str, timestamp: int) -> int | None:
        """The first offset of partition 0 at or after the time; None if there is none."""
        raise NotImplementedError


class ConfluentKafka(ClientLibrary):
    name = "confluent-kafka"

    def send(self, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False) -> None:
        from confluent_kafka import Producer

        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "compression.type": codec,
            "message.max.bytes": MAX_BYTES,
            "partitioner": "murmur2_random",
            "enable.idempotence": idempotent,
            "linger.ms": 5,
        }
        producer = Producer(settings)
        errors: list[str] = []

        def told(error: Any, _: Any) -> None:
            if error is not None:
                errors.append(str(error))

        for one in records:
            where: dict[str, Any] = {} if one.partition is None else {"partition": one.partition}
            if one.timestamp is not None:
                where["timestamp"] = one.timestamp
            headers = list(one.headers)
            producer.produce(topic, one.value, one.key, headers=headers or None, on_delivery=told, **where)
        left = producer.flush(30)
        if errors or left:
            raise RuntimeError(errors[0] if errors else f"{left} records were not delivered")

    def read(self, topic: str, count: int, partitions: Sequence[int] = (0,), offset: int = 0) -> list[Got]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": MAX_BYTES,
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.assign([TopicPartition(topic, one, offset or OFFSET_BEGINNING) for one in partitions])
        found: list[Got] = []
        deadline = time.monotonic() + 30
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None, message.error()
                headers = tuple(message.headers() or ())
                found.append(Got(message.partition(), message.offset(), message.key(), message.value(), headers))
        consumer.close()
        return found

    def offset_at(self, topic: str, timestamp: int) -> int | None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "not-used"})
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=20)
        consumer.close()
        return None if found.offset < 0 else int(found.offset)


class KafkaPython(ClientLibrary):
    name = "kafka-python"

    def send(self, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=MAX_BYTES,
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    one.value,
                    one.key,
                    headers=list(one.headers),
                    partition=one.partition,
                    timestamp_ms=one.timestamp,
                )
                for one in records
            ]
            for future in futures:
                future.get(30)
        finally:
            producer.close(5)

    def _consumer(self) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=MAX_BYTES,
            fetch_max_wait_ms=50,
        )

    def read(self, topic: str, count: int, partitions: Sequence[int] = (0,), offset: int = 0) -> list[Got]:
        from kafka import TopicPartition

        consumer = self._consumer()
        assigned = [TopicPartition(topic, one) for one in partitions]
        consumer.assign(assigned)
        for one in assigned:
            consumer.seek(one, offset)
        found: list[Got] = []
        deadline = time.monotonic() + 30
        while len(found) < count and time.monotonic() < deadline:
            for messages in consumer.poll(200).values():
                found += [Got(one.partition, one.offset, one.key, one.value, tuple(one.headers)) for one in messages]
        consumer.close()
        return found

    def offset_at(self, topic: str, timestamp: int) -> int | None:
        from kafka import TopicPartition

        consumer = self._consumer()
        found = consumer.offsets_for_times({TopicPartition(topic, 0): timestamp})[TopicPartition(topic, 0)]
        consumer.close()
        return None if found is None else int(found.offset)


class AioKafka(ClientLibrary):
    name = "aiokafka"

    def send(self, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False) -> None:
        asyncio.run(self._send(topic, records, codec, idempotent))

    async def _send(self, topic: str, records: Sequence[Sent], codec: str, idempotent: bool) -> None:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=MAX_BYTES,
            linger_ms=5,
        )
        await producer.start()
        try:
            waiting = [
                await producer.send(
                    topic,
                    one.value,
                    one.key,
                    headers=list(one.headers),
                    partition=one.partition,
                    timestamp_ms=one.timestamp,
                )
                for one in records
            ]
            await asyncio.wait_for(asyncio.gather(*waiting), 30)
        finally:
            await producer.stop()

    def read(self, topic: str, count: int, partitions: Sequence[int] = (0,), offset: int = 0) -> list[Got]:
        async def work(consumer: Any) -> list[Got]:
            from aiokafka import TopicPartition

            assigned = [TopicPartition(topic, one) for one in partitions]
            consumer.assign(assigned)
            for one in assigned:
                consumer.seek(one, offset)
            found: list[Got] = []
            deadline = time.monotonic() + 30
            while len(found) < count and time.monotonic() < deadline:
                for messages in (await consumer.getmany(timeout_ms=200)).values():
                    found += [
                        Got(one.partition, one.offset, one.key, one.value, tuple(one.headers)) for one in messages
                    ]
            return found

        return self._with_consumer(work)

    def offset_at(self, topic: str, timestamp: int) -> int | None:
        async def work(consumer: Any) -> int | None:
            from aiokafka import TopicPartition

            found = (await consumer.offsets_for_times({TopicPartition(topic, 0): timestamp}))[TopicPartition(topic, 0)]
            return None if found is None else int(found.offset)

        return self._with_consumer(work)

    def _with_consumer(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        from aiokafka import AIOKafkaConsumer

        async def run() -> Any:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                enable_auto_commit=False,
                max_partition_fetch_bytes=MAX_BYTES,
                fetch_max_wait_ms=50,
            )
            await consumer.start()
            try:
                return await work(consumer)
            finally:
                await consumer.stop()

        return asyncio.run(run())


class Kcat(ClientLibrary):
    name = "kcat"

    def send(self, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number, one in enumerate(records):
                path = Path(folder) / str(number)
                path.write_bytes(one.value or b"")
                options = ["-z", codec, "-X", f"message.max.bytes={MAX_BYTES}", "-X", "partitioner=murmur2_random"]
                options += ["-X", f"enable.idempotence={str(idempotent).lower()}"]
                options += [] if one.partition is None else ["-p", str(one.partition)]
                for name, value in one.headers:
                    options += ["-H", name if value is None else f"{name}={value.decode()}"]
                if one.value:
                    options += [] if one.key is None else ["-k", one.key.decode()]
                    self._run(["-P", "-t", topic, *options, str(path)])
                else:  # an empty file is no message to kcat, a key and nothing is
                    options += ["-K", "|", *(["-Z"] if one.value is None else [])]
                    self._run(["-P", "-t", topic, *options], stdin=(one.key or b"") + b"|\n")

    def read(self, topic: str, count: int, partitions: Sequence[int] = (0,), offset: int = 0) -> list[Got]:
        found: list[Got] = []
        for partition in partitions:
            options = ["-C", "-t", topic, "-p", str(partition), "-o", str(offset), "-e", "-q", "-J"]
            options += ["-X", f"fetch.message.max.bytes={MAX_BYTES}"]
            found += [_of_kcat(json.loads(line)) for line in self._run(options).splitlines()]
        return found

    def offset_at(self, topic: str, timestamp: int) -> int | None:
        answer = self._run(["-Q", "-t", f"{topic}:0:{timestamp}"]).decode()
        offset = int(answer.split("offset")[1].split()[0].strip(":[]"))
        return None if offset < 0 else offset

    def _run(self, options: Sequence[str], stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            ["kcat", "-b", self.bootstrap, *options], input=stdin, capture_output=True, timeout=60, check=False
        )
        if done.returncode or b"% ERROR" in done.stderr or b"Delivery failed" in done.stderr:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return done.stdout


def _of_kcat(told: dict[str, Any]) -> Got:
    def raw(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    pairs = told.get("headers", [])
    headers = tuple((pairs[at], raw(pairs[at + 1])) for at in range(0, len(pairs), 2))
    return Got(told["partition"], told["offset"], raw(told.get("key")), raw(told.get("payload")), headers)


LIBRARIES: dict[str, type[ClientLibrary]] = {one.name: one for one in (ConfluentKafka, KafkaPython, AioKafka, Kcat)}


def library(name: str, bootstrap: str) -> ClientLibrary:
    """The client of that name; skips the test with the reason where it is not installed."""
    if name == "kcat" and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    return LIBRARIES[name](bootstrap)
