"""Records in and out of a broker under test, without a client of one's own."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

# Text is sent as UTF-8, mappings and sequences as JSON, None as a null: a tombstone in a compacted topic.
Value = str | bytes | None | Mapping[str, Any] | Sequence[Any]
Key = str | bytes | None
Headers = Mapping[str, str | bytes | None]

SEND_S_MAX = 30.0
READ_S_MAX = 30.0
POLL_S = 0.05


class NoTopic(OttlaError):
    """Nobody has created or written to the topic yet."""


@dataclass(frozen=True)
class Record:
    """A record as a consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None] = field(default_factory=dict)  # of a name that comes twice, the last

    @property
    def text(self) -> str:
        """The value as text; empty for a null."""
        return (self.value or b"").decode()

    @property
    def json(self) -> Any:
        """The value read as JSON; None for a null."""
        return None if self.value is None else json.loads(self.value)


def encoded(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


class Sender:
    """A producer that waits for every acknowledgement; keys go where Java's clients send them."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        from confluent_kafka import Producer

        quick = {"linger.ms": 0, "partitioner": "murmur2_random", "log_level": 0}
        self._producer: Producer = Producer({**settings, **quick})

    def send(
        self, topic: str, values: Sequence[Value], key: Key, headers: Headers, partition: int | None, timestamp_ms: int
    ) -> None:
        failures: list[Any] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error)

        where = {} if partition is None else {"partition": partition}
        fields = {
            "headers": [(name, encoded(value)) for name, value in headers.items()],
            "timestamp": timestamp_ms,
            **where,
        }
        for value in values:
            self._enqueue(topic, encoded(value), encoded(key), on_delivery=delivered, **fields)
        unsent = self._producer.flush(SEND_S_MAX)
        if failures:
            raise OttlaError(f"topic '{topic}' did not take a record: {failures[0].str()}.")
        if unsent:
            raise OttlaError(f"topic '{topic}' did not take {unsent} records within {SEND_S_MAX:.0f} s.")

    def _enqueue(self, topic: str, *values: Any, **fields: Any) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(topic, *values, **fields)
                return
            except BufferError:  # librdkafka's queue is full
                self._producer.poll(POLL_S)
            except KafkaException as error:
                raise OttlaError(f"topic '{topic}' did not take a record: {error.args[0].str()}.") from None


def read_all(settings: Mapping[str, str] | str, topic: str, committed_only: bool) -> list[Record]:
    """All records that are there now, by partition and offset. A bare address is reached in plain text."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": settings} if isinstance(settings, str) else settings
    consumer: Consumer = Consumer(
        {
            **settings,
            "group.id": "ottla-testing",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "check.crcs": True,
            "fetch.wait.max.ms": 10,  # the end of a partition is told by an answer without records
            "log_level": 0,
        }
    )
    try:
        found = consumer.list_topics(topic, timeout=READ_S_MAX).topics[topic]
        if found.error is not None:
            raise NoTopic(f"there is no topic '{topic}'.")
        # 0 is where most logs begin, and a shorter way than asking; elsewhere auto.offset.reset leads to the beginning
        consumer.assign([TopicPartition(topic, index, 0) for index in found.partitions])
        return sorted(
            _read_to_ends(consumer, set(found.partitions)), key=lambda record: (record.partition, record.offset)
        )
    finally:
        consumer.close()


def _read_to_ends(consumer: Consumer, unfinished: set[int]) -> list[Record]:
    records: list[Record] = []
    deadline = time.monotonic() + READ_S_MAX
    while unfinished:
        message = consumer.poll(POLL_S)
        if message is None:
            if time.monotonic() > deadline:
                raise OttlaError(f"nothing came from the broker for {READ_S_MAX:.0f} s.")
            continue
        deadline = time.monotonic() + READ_S_MAX
        if (error := message.error()) is None:
            records.append(_record(message))
        elif error.name() == "_PARTITION_EOF":
            unfinished.discard(message.partition())
        else:
            raise OttlaError(f"the records could not be read: {error.str()}.")
    return records


def _record(message: Any) -> Record:
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=dict(message.headers() or ()),
    )
