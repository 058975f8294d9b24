"""Sinks: records become bytes for a topic."""

from __future__ import annotations

from typing import Any

from ottla.streams import serdes
from ottla.streams.processing.context import TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import Headers
from ottla.streams.topology import SinkNode


class SinkOperator(Operator):
    def __init__(self, node: SinkNode, context: TaskContext) -> None:
        """Ready at once: whoever is above it holds its `process`, which is another one where the topic is known."""
        self._node = node
        self._context = context
        self._emit = context.emit
        self._writers: dict[str, tuple[Any, Any]] = {}
        if isinstance(self._node.topic, str) and self._node.partitioner is None:
            self._topic = context.real_name(self._node.topic)
            self._key, self._value = self._writers_for(self._topic)
            self.process = self._process_plainly  # type: ignore[method-assign]

    def _writers_for(self, topic: str) -> tuple[Any, Any]:
        if topic not in self._writers:
            node = self._node
            self._writers[topic] = serdes.writer(node.key_serde, topic), serdes.writer(node.value_serde, topic)
        return self._writers[topic]

    def _process_plainly(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self._emit(self._topic, self._key(key), self._value(value), timestamp, headers, None)

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        chosen = self._node.topic
        named = chosen if isinstance(chosen, str) else chosen(key, value, self._context.metadata)
        topic = self._context.real_name(named)
        to_key, to_value = self._writers_for(topic)
        partition = None
        if self._node.partitioner is not None:
            count = self._context.partition_counts.get(topic, 1)
            partition = self._node.partitioner(topic, key, value, count)
        self._emit(topic, to_key(key), to_value(value), timestamp, headers, partition)
