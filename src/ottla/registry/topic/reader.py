"""Follows the topic in a thread, and hands on what it reads, in order and in batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.common.errors import OttlaError

_BATCH = 500
_POLL_S = 0.2
_ANSWER_S_MAX = 30.0
_LOG = logging.getLogger("ottla.registry.reader")


class Read(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


Deliver = Callable[[list[Read]], None]


class TopicReader:
    """`deliver` is called in the reader's thread."""

    def __init__(self, client: Mapping[str, str], topic: str, deliver: Deliver) -> None:
        """`client`: settings of librdkafka."""
        self._client = dict(client)
        self._topic = topic
        self._deliver = deliver
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._consumer: Any = None

    def start(self) -> int:
        """The offset of the next record to be written now: once all before it are delivered, all is known."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

        settings = {
            "group.id": "ottla-registry",  # librdkafka wants a name; nothing joins and nothing is committed
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "client.id": "ottla-registry",
            "log_level": 0,
            "fetch.error.backoff.ms": "50",
            "error_cb": lambda error: _LOG.warning("the cluster has trouble: %s", error),
        }
        try:
            self._consumer = Consumer({**settings, **self._client})
            where = TopicPartition(self._topic, 0, OFFSET_BEGINNING)
            _, end = self._consumer.get_watermark_offsets(where, timeout=_ANSWER_S_MAX)
            self._consumer.assign([where])
        except KafkaException as error:
            raise OttlaError(f"the topic '{self._topic}' cannot be read: {error.args[0].str()}.") from None
        self._thread = threading.Thread(target=self._run, name="ottla-registry-reader", daemon=True)
        self._thread.start()
        return int(end)

    def stop(self) -> None:
        self._is_stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._consumer is not None:
            self._consumer.close()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            batch: list[Read] = []
            for message in self._consumer.consume(1, _POLL_S) or ():
                self._take(message, batch)
            # What is there already comes along; nobody waits for a full batch.
            for message in self._consumer.consume(_BATCH, 0) if batch else ():
                self._take(message, batch)
            if batch:
                self._deliver(batch)

    def _take(self, message: Any, batch: list[Read]) -> None:
        if message.error() is not None:
            _LOG.warning("the topic cannot be read now: %s", message.error())
            return
        batch.append(Read(message.offset(), message.timestamp()[1], message.key(), message.value()))
