"""A task: the operators of one sub-topology for one partition, with their stores, time and timers.

Whoever runs it (the test driver, an executor) hands it records in their order and gets what it emits. It knows neither
brokers nor Spark. What it must remember besides its stores, times and timers, it gives as one small value.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from operator import index
from typing import Any

from ottla.common.lineage import HEADER
from ottla.streams import errors, serdes
from ottla.streams.errors import DEFAULT_HANDLING, BatchFailed, ErrorHandling, NotWritten, OnError, RecordFailed
from ottla.streams.native import NativeStage
from ottla.streams.operators.batches import MapBatches
from ottla.streams.operators.stateless import Branch
from ottla.streams.processing.context import Emit, TaskContext, Topics, nothing_known
from ottla.streams.processing.operator import Operator, forward_to
from ottla.streams.processing.processor import ProcessorOperator
from ottla.streams.processing.sinks import SinkOperator
from ottla.streams.record import Headers, RecordMetadata
from ottla.streams.state.sessions import SessionStore
from ottla.streams.state.window_store import WindowStore
from ottla.streams.topology import ProcessorNode, SinkNode, SourceNode, SubTopology, Topology

Remembered = dict[str, Any]
# Of one task and micro-batch: the first few show what is wrong, and all are counted.
_LOGGED_MAX = 10
_log = logging.getLogger("ottla.streams")


class StreamTask:
    def __init__(
        self,
        topology: Topology,
        sub_topology: SubTopology,
        partition: int,
        *,
        application_id: str,
        stores: Mapping[str, Any],
        emit: Emit,
        topics: Topics = nothing_known,
        handling: ErrorHandling = DEFAULT_HANDLING,
        remembered: Remembered | None = None,
        wall_clock_ms: int = 0,
        stages: Mapping[str, NativeStage] | None = None,
        has_lineage: bool = False,
    ) -> None:
        """`stages`: which operators may be done before records come, by source. `has_lineage`: what is written says
        in a header which record it was made of."""
        self.id = f"{sub_topology.number}_{partition}"
        self.partition = partition
        self._handling = handling
        self._emit = emit
        # The record that is being processed, as it came; `context.at` says which one that is.
        self._raw: tuple[tuple[str, int, int], bytes | None, bytes | None, int, Headers] | None = None
        self._logged = 0
        self._stores = {name: stores[name] for name in sub_topology.stores}
        self.context = TaskContext(
            application_id,
            self.id,
            stores,
            emit,
            topics,
            partial(topology.real_name, application_id),
            self._not_written,
            checks_outputs=handling.production is not OnError.FAIL,
            has_lineage=has_lineage,
        )
        self.context.wall_clock_ms = wall_clock_ms
        self._operators: dict[str, Operator] = {}
        self._readers: dict[str, _Reader] = {}
        self._own_topics: set[str] = set()
        # Where records go on for which the operators of their stage are done.
        self._below: dict[str, Any] = {}
        self._build(topology, sub_topology)
        for name in sub_topology.sources:
            if stages and name in stages:
                self._enter_below(topology, stages[name])
        self._waiting_operators = [each for each in self._operators.values() if isinstance(each, MapBatches)]
        if remembered is not None:
            self._restore(remembered)
        for name in sub_topology.nodes:
            if name in self._operators:
                self._operators[name].init(self.context)

    def _build(self, topology: Topology, sub_topology: SubTopology) -> None:
        for name in reversed(sub_topology.nodes):  # children were added after their parents
            node = topology.nodes[name]
            children = {child: self._operators[child] for child in node.children}
            forward = forward_to(list(children.values()))
            if isinstance(node, SourceNode):
                for named in node.topics:
                    topic = self.context.real_name(named)
                    if topic != named:
                        self._own_topics.add(topic)
                    self._readers[topic] = _Reader(node, topic, forward)
                continue
            operator: Any
            if isinstance(node, SinkNode):
                operator = SinkOperator(node, self.context)
            else:
                assert isinstance(node, ProcessorNode)
                operator = node.make()
                if isinstance(operator, ProcessorOperator):
                    operator.store_names = [*node.stores, *topology.global_stores]
                    operator.children_by_name = children
            if isinstance(operator, Branch):
                operator.branches = [child.process for child in children.values()]
            operator.node_name = name
            operator.forward = forward
            self._operators[name] = operator

    def _enter_below(self, topology: Topology, stage: NativeStage) -> None:
        source = topology.nodes[stage.source]
        assert isinstance(source, SourceNode)
        if stage.aggregate is not None:
            forward: Any = self._operators[stage.aggregate].process
        else:
            forward = self._operators[stage.nodes[-1]].forward
        for named in source.topics:
            self._below[self.context.real_name(named)] = forward

    # --- records

    def process(
        self,
        topic: str,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
        done: tuple[Any, Any] | None = None,
    ) -> None:
        """`done`: the key and the value that the operators of this topic's stage have made of it; for an aggregate what
        was made of several records."""
        context = self.context
        at = context.at = (topic, self.partition, offset)
        self._raw = (at, key, value, timestamp, headers)
        if context.has_lineage and topic in self._own_topics:
            origin = next((data for name, data in headers if name == HEADER), None)
            if origin is not None:
                context.origins[at] = origin
        part = "key"
        try:
            if done is not None:
                (record_key, record_value), forward = done, self._below[topic]
            else:
                reader = self._readers[topic]
                forward = reader.forward
                record_key = reader.key(key)
                part = "value"
                record_value = reader.value(value)
                if reader.extractor is not None:
                    part = "time"
                    timestamp = index(reader.extractor(record_key, record_value, timestamp, context.stream_time_ms))
                if timestamp < 0:
                    part = "time"
                    raise ValueError(f"{timestamp} is negative")
        except MemoryError:
            raise  # no record is to blame for it
        except Exception as error:
            problem = errors.undecodable(RecordMetadata(*at), part, error)
            self._handle(self._handling.deserialization, "undecodable", problem, error, key, value, timestamp, headers)
            return
        if timestamp > context.stream_time_ms:
            context.stream_time_ms = timestamp
        try:
            forward(record_key, record_value, timestamp, headers)
        except (BatchFailed, NotWritten, MemoryError):
            raise
        except Exception as error:
            context.at = at
            problem = errors.failed(RecordMetadata(*at), error)
            self._handle(self._handling.processing, "failed", problem, error, key, value, timestamp, headers)
        if context.stream_schedules.is_used:
            self.punctuate_stream_time()

    def _handle(
        self,
        choice: OnError,
        kind: str,
        problem: str,
        error: Exception,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if choice is OnError.FAIL:
            raise RecordFailed(f"{problem}.") from error
        self._let_go(choice, kind, problem, key, value, timestamp, headers)

    def _not_written(self, node: str, topic: str, why: Exception | str) -> None:
        """A record that a sink cannot write. The dead letter is the record that it was made of, as it came; where that
        is not known any more (a timer, `map_batches`) only the headers say which one it was."""
        if isinstance(why, MemoryError):
            raise why
        problem = errors.not_written(self.context.metadata, node, topic, why)
        choice = self._handling.production
        if choice is OnError.FAIL:
            raise NotWritten(f"{problem}.") from (why if isinstance(why, Exception) else None)
        raw = self._raw
        if raw is not None and raw[0] == self.context.at:
            self._let_go(choice, "not written", problem, *raw[1:])
        else:
            self._let_go(choice, "not written", problem, None, None, max(0, self.context.stream_time_ms), ())

    def _let_go(
        self,
        choice: OnError,
        kind: str,
        problem: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        self.context.drop(kind)
        self._logged += 1
        if self._logged <= _LOGGED_MAX:
            last = " More of this task and batch are counted only." if self._logged == _LOGGED_MAX else ""
            _log.warning("%s: %s.%s", self.context.application_id, problem, last)
        if choice is OnError.DEAD_LETTER:
            topic = self._handling.dead_letter_topic
            metadata = self.context.metadata
            assert topic is not None
            why: Headers = (
                ("ottla.reason", problem.encode()),
                ("ottla.pipeline", self.context.application_id.encode()),
            )
            if metadata is not None:
                why += (
                    ("ottla.source.topic", metadata.topic.encode()),
                    ("ottla.source.partition", str(metadata.partition).encode()),
                    ("ottla.source.offset", str(metadata.offset).encode()),
                    ("ottla.source.timestamp", str(timestamp).encode()),
                )
            self._emit(topic, key, value, max(0, timestamp), (*headers, *why), None)

    @property
    def waits(self) -> bool:
        """Whether records may wait in it for others."""
        return bool(self._waiting_operators)

    def flush(self) -> bool:
        """Records that wait for others go on. Whether there were any."""
        has_waited = False
        while any(operator.flush() for operator in self._waiting_operators):
            has_waited = True
        return has_waited

    # --- timers

    def punctuate_stream_time(self) -> bool:
        context = self.context
        return context.stream_time_ms >= 0 and self._punctuate(context.stream_schedules, context.stream_time_ms)

    def punctuate_wall_clock(self, now_ms: int) -> bool:
        self.context.wall_clock_ms = now_ms
        return self._punctuate(self.context.wall_schedules, now_ms)

    def _punctuate(self, schedules: Any, now_ms: int) -> bool:
        try:
            return bool(schedules.run(now_ms))
        except (RecordFailed, MemoryError):
            raise
        except Exception as error:
            raise RecordFailed(f"{errors.failed(None, error)}.") from error

    # --- what outlives it

    def remembered(self) -> Remembered:
        """Times that were seen and timers, for the next life of this task."""
        kept = {
            name: {each: getattr(owner, each) for each in owner.remembered}
            for name, owner in [*self._operators.items(), *self._stores.items()]
            if owner.remembered
        }
        return {
            "stream_time": self.context.stream_time_ms,
            "stream_timers": self.context.stream_schedules.snapshot(),
            "wall_timers": self.context.wall_schedules.snapshot(),
            "times": kept,
        }

    def _restore(self, remembered: Remembered) -> None:
        self.context.stream_time_ms = remembered["stream_time"]
        self.context.stream_schedules.restore(remembered["stream_timers"])
        self.context.wall_schedules.restore(remembered["wall_timers"])
        for name, owner in [*self._operators.items(), *self._stores.items()]:
            for each, value in remembered["times"].get(name, {}).items():
                if each in owner.remembered:
                    setattr(owner, each, value)

    def forget_old(self) -> None:
        """Windows that nobody sees any more."""
        for store in self._stores.values():
            if isinstance(store, (WindowStore, SessionStore)):
                store.forget_old()

    def close(self) -> None:
        for operator in self._operators.values():
            operator.close()


class _Reader:
    """Of one topic: bytes to objects, and on to the operators below its source."""

    __slots__ = ("extractor", "forward", "key", "value")

    def __init__(self, node: SourceNode, topic: str, forward: Any) -> None:
        self.key = serdes.reader(node.key_serde, topic)
        self.value = serdes.reader(node.value_serde, topic)
        self.extractor = node.timestamp_extractor
        self.forward = forward
