"""Sinks: records become bytes for a topic. What cannot be written is for the handler of production errors."""

from __future__ import annotations

from typing import Any

from ottla.streams import serdes
from ottla.streams.processing.context import TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import Headers
from ottla.streams.topology import SinkNode

# What a batch of one record has besides key, value and headers is less.
_OVERHEAD_BYTES = 128


class SinkOperator(Operator):
    node_name: str

    def __init__(self, node: SinkNode, context: TaskContext) -> None:
        """Ready at once: whoever is above it holds its `process`, which is another one where the topic is known."""
        self._node = node
        self.node_name = node.name
        self._context = context
        self._emit = context.emit
        self._writers: dict[str, tuple[Any, Any]] = {}
        if isinstance(self._node.topic, str) and self._node.partitioner is None and not context.checks_outputs:
            self._topic = context.real_name(self._node.topic)
            self._key, self._value = self._writers_for(self._topic)
            self.process = self._process_plainly  # type: ignore[method-assign]
        if context.has_lineage:
            untraced, with_lineage = self.process, context.with_lineage

            def traced(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
                untraced(key, value, timestamp, with_lineage(headers))

            self.process = traced  # type: ignore[method-assign]

    def _writers_for(self, topic: str) -> tuple[Any, Any]:
        if topic not in self._writers:
            node = self._node
            self._writers[topic] = serdes.writer(node.key_serde, topic), serdes.writer(node.value_serde, topic)
        return self._writers[topic]

    def _process_plainly(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        try:
            key_bytes, value_bytes = self._key(key), self._value(value)
        except Exception as error:
            self._context.not_written(self.node_name, self._topic, error)
            return
        self._emit(self._topic, key_bytes, value_bytes, timestamp, headers, None)

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        chosen = self._node.topic
        context = self._context
        named = chosen if isinstance(chosen, str) else chosen(key, value, context.metadata)
        if not isinstance(named, str):
            raise TypeError(f"the function that chooses a topic must give its name, and gave {type(named).__name__}")
        topic = context.real_name(named)
        to_key, to_value = self._writers_for(topic)
        try:
            key_bytes, value_bytes = to_key(key), to_value(value)
        except Exception as error:
            context.not_written(self.node_name, topic, error)
            return
        partition = None
        if self._node.partitioner is not None or context.checks_outputs:
            facts = context.topics(topic)
            if facts is None:
                context.not_written(self.node_name, topic, "the topic does not exist")
                return
            if self._node.partitioner is not None:
                partition = self._node.partitioner(topic, key, value, facts.partitions or 1)
                if partition is not None and not 0 <= partition < (facts.partitions or partition + 1):
                    why = f"partition {partition} is not one of its {facts.partitions or 1}"
                    context.not_written(self.node_name, topic, why)
                    return
            if facts.bytes_max is not None and context.checks_outputs:
                size = _bytes_plain(key_bytes, value_bytes, headers)
                if size > facts.bytes_max:
                    size = facts.bytes_of(key_bytes, value_bytes, headers, timestamp)
                if size > facts.bytes_max:
                    why = f"it has {size:,} bytes, and the topic takes {facts.bytes_max:,}"
                    context.not_written(self.node_name, topic, why)
                    return
        self._emit(topic, key_bytes, value_bytes, timestamp, headers, partition)


def _bytes_plain(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """At most so many, in a batch by itself that is not compressed."""
    own = len(key or b"") + len(value or b"") + _OVERHEAD_BYTES
    return own + sum(len(name.encode()) + len(data or b"") + 10 for name, data in headers)
