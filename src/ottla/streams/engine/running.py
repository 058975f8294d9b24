"""On an executor: the records of a micro-batch through the tasks of a topology, as the work of a task of Spark's.

Spark gives a task ranges of offsets, and it reads the records itself. All of a partition number come to the same Spark
task (option `wholePartitions` of the source). Where a topology begins with SQL expressions, they are evaluated on
columns (`stages.py`). Records of one topology task are processed in the order of their times where several topics meet,
and of their offsets within one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow as pa

from ottla.client.settings import ClientSettings
from ottla.common.failures import Retriable
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts
from ottla.spark.source.ranges import RangeReading
from ottla.streams.engine.changelogs import to_records
from ottla.streams.engine.folding import folded
from ottla.streams.engine.garbage import not_collected, set_aside
from ottla.streams.engine.global_tables import open_global
from ottla.streams.engine.identity import task_topic
from ottla.streams.engine.memory import RECORDS_BETWEEN_LOOKS, StateTooLarge, refusal
from ottla.streams.engine.outputs import ClusterTopics
from ottla.streams.engine.records import Row, by_partition, in_order, rows_of
from ottla.streams.engine.stages import Done, Stage, stages_by_topic
from ottla.streams.engine.task_state import (
    batch_too_large,
    check_room,
    check_room_for_batch,
    drop_copies,
    note,
    open_state,
)
from ottla.streams.errors import ErrorHandling
from ottla.streams.native import NativeStage
from ottla.streams.processing.context import DROPPED_LATE, DROPPED_NULL
from ottla.streams.processing.task import StreamTask
from ottla.streams.record import NO_HEADERS, Headers
from ottla.streams.state.specs import changelog_topic
from ottla.streams.topology import SourceNode, SubTopology, Topology

ROWS_MAX = 10_000
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", _HEADERS),
    ]
)


class PartitionsAdded(Retriable):
    """To a topic that is read: the application starts again, and decides whether it can go on with them."""


@dataclass(frozen=True)
class TopologyRun:
    """All that a Spark task has to know; goes to executors with it."""

    topology: Topology
    application_id: str
    settings: ClientSettings
    partition_counts: dict[str, int]
    handling: ErrorHandling
    # Of the topics of the application, and of the cluster.
    generation: str
    # Topics that the application has made: what goes there is not counted as its results.
    own: frozenset[str] = frozenset()
    # How the records of ranges are read; None where they are given.
    reading: RangeReading | None = None
    # What is done on columns, by source.
    stages: dict[str, NativeStage] = field(default_factory=dict)
    has_lineage: bool = False

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        """In the form of the sink's `Work`. What is counted is told of the batch by Spark's progress."""
        records = rows if self.reading is None else _counted(self.reading.records(rows), counts)
        for batch in self._run(records, counts):
            self._count_written(batch, counts)
            yield batch

    def _count_written(self, batch: pa.RecordBatch, counts: Counts) -> None:
        for each in batch.column("topic").value_counts().to_pylist():
            if each["values"] not in self.own:
                counts["rows"] += each["counts"]
            if each["values"] == self.handling.dead_letter_topic:
                counts["dead_letters"] += each["counts"]

    def _run(self, batches: Iterable[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        subs = self._subs_by_topic()
        stages = stages_by_topic(self.topology, self.application_id, self.stages, has_lineage=self.has_lineage)
        queues: dict[tuple[int, int], _Queue] = {}
        try:
            with not_collected():
                for batch in batches:
                    check_room_for_batch(self.application_id)
                    for topic, partition, records in by_partition(batch):
                        if partition >= self.partition_counts[topic]:
                            raise PartitionsAdded(
                                f"the topic '{topic}' has got partitions since the application started."
                            )
                        queue = queues.setdefault((subs[topic].number, partition), _Queue())
                        if topic not in stages:
                            queue.rows_of(topic).extend(rows_of(records))
                            continue
                        done = stages[topic].done(topic, partition, records)
                        queue.take(topic, done)
                        if done.written is not None and len(done.written[0]):
                            yield _written(stages[topic], done)
        except MemoryError:
            queues.clear()
            drop_copies()
            raise batch_too_large(self.application_id, "none is left") from None
        numbered = {sub.number: sub for sub in subs.values()}
        out = _Rows()
        shared = self._global_stores() if queues else {}
        for (number, partition), queue in sorted(queues.items(), key=itemgetter(0)):
            try:
                with set_aside():
                    yield from self._run_task(numbered[number], partition, queue, stages, shared, out, counts)
            except (MemoryError, StateTooLarge) as error:
                drop_copies()  # whoever tries it next in this process begins with all the room there is
                if isinstance(error, StateTooLarge):
                    raise
                raise StateTooLarge(refusal(self._state_of(f"{number}_{partition}"), "none is left")) from None
        yield from out.rest()

    def _state_of(self, task_id: str) -> str:
        return f"the state of task {task_id} of application '{self.application_id}'"

    def _global_stores(self) -> dict[str, Any]:
        topology, found = self.topology, {}
        for name, source in topology.global_stores.items():
            node, spec = topology.nodes[source], topology.stores[name]
            assert isinstance(node, SourceNode)
            topic = topology.real_name(self.application_id, node.topics[0])
            data = open_global(self.settings, self.application_id, self.generation, spec, topic)
            found[name] = spec.open(data, self.application_id)
        return found

    def _subs_by_topic(self) -> dict[str, SubTopology]:
        found = {}
        for sub in self.topology.sub_topologies():
            for source in sub.sources:
                node = self.topology.nodes[source]
                assert isinstance(node, SourceNode)
                for topic in node.topics:
                    found[self.topology.real_name(self.application_id, topic)] = sub
        return found

    def _run_task(
        self,
        sub: SubTopology,
        partition: int,
        queue: _Queue,
        stages: dict[str, Stage],
        shared: dict[str, Any],
        out: _Rows,
        counts: Counts,
    ) -> Iterator[pa.RecordBatch]:
        task_id = f"{sub.number}_{partition}"
        specs = {name: self.topology.stores[name] for name in sub.stores}
        state = open_state(self.settings, self.application_id, self.generation, task_id, partition, specs)
        stores = {name: spec.open(state.pending[name], self.application_id) for name, spec in specs.items()}
        now_ms = int(time.time() * 1000)
        task = StreamTask(
            self.topology,
            sub,
            partition,
            application_id=self.application_id,
            stores={**stores, **shared},
            emit=out.add,
            topics=ClusterTopics(self.settings, self.generation),
            handling=self.handling,
            remembered=state.remembered,
            wall_clock_ms=now_ms,
            stages=self.stages,
            has_lineage=self.has_lineage,
        )
        rows = out.rows
        for number, (topic, record) in enumerate(in_order(queue.by_topic)):
            task.process(topic, *record)
            if len(rows) >= ROWS_MAX:
                yield out.taken()
            if number % RECORDS_BETWEEN_LOOKS == 0:
                check_room(self._state_of(task_id), state)
        for topic, tables in queue.to_fold.items():
            aggregation = stages[topic].aggregation
            assert aggregation is not None
            found, without = folded(pa.Table.from_batches(tables), aggregation)
            if without:
                task.context.dropped[DROPPED_NULL] += without
            for offset, record_key, aggregate, latest_ms in found:
                task.process(topic, offset, None, None, latest_ms, NO_HEADERS, (record_key, aggregate))
                if len(rows) >= ROWS_MAX:
                    yield out.taken()
        task.flush()
        task.punctuate_wall_clock(now_ms)
        task.flush()
        task.forget_old()
        task.close()
        for name, spec in specs.items():
            log = changelog_topic(self.application_id, name)
            for key, value, time_ms in to_records(spec, state.pending[name].changes(), now_ms):
                out.add(log, key, value, time_ms, NO_HEADERS, partition)
                if len(rows) >= ROWS_MAX:
                    yield out.taken()
        check_room(self._state_of(task_id), state)
        token = uuid.uuid4().hex
        remembered = note(token, task.remembered())
        dropped = task.context.dropped
        counts.update(late=dropped.get(DROPPED_LATE, 0), dropped=sum(dropped.values()), entries=state.entries())
        out.add(task_topic(self.application_id), task_id.encode(), remembered, now_ms, NO_HEADERS, partition)
        state.pending_token = token


def _counted(batches: Iterable[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
    counts[RECORDS_IN] = 0
    for batch in batches:
        counts[RECORDS_IN] += batch.num_rows
        yield batch


class _Queue:
    """What waits for a task."""

    def __init__(self) -> None:
        self.by_topic: dict[str, list[Row]] = {}
        self.to_fold: dict[str, list[pa.RecordBatch]] = {}

    def rows_of(self, topic: str) -> list[Row]:
        return self.by_topic.setdefault(topic, [])

    def take(self, topic: str, done: Done) -> None:
        if done.to_fold is not None and len(done.to_fold):
            self.to_fold.setdefault(topic, []).append(done.to_fold)
        rows = [*(done.rows or ()), *rows_of(done.left)]
        if rows:
            self.rows_of(topic).extend(sorted(rows, key=itemgetter(0)) if len(done.left) else rows)


def _written(stage: Stage, done: Done) -> pa.RecordBatch:
    assert done.written is not None
    keys, values, times, headers = done.written
    columns = [
        pa.repeat(stage.sink_topic, len(keys)),
        pa.nulls(len(keys), pa.int32()),
        keys,
        values,
        times.cast(pa.timestamp("ms", tz="UTC")),
        headers,
    ]
    arrays = [column.cast(kind.type) for column, kind in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class _Rows:
    """What is emitted, until there is enough of it for a record batch."""

    def __init__(self) -> None:
        # topic, key, value, time in ms, headers, partition if it is chosen
        self.rows: list[tuple[str, bytes | None, bytes | None, int, Headers, int | None]] = []

    def add(self, *row: Any) -> None:
        self.rows.append(row)

    def taken(self) -> pa.RecordBatch:
        topics, keys, values, times, heads, partitions = zip(*self.rows, strict=True)
        # The same list: a task looks at it.
        self.rows.clear()
        arrays = [
            pa.array(topics, pa.string()),
            pa.array(partitions, pa.int32()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(times, pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC")),
            _header_array(heads),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def rest(self) -> Iterator[pa.RecordBatch]:
        if self.rows:
            yield self.taken()


def _header_array(heads: tuple[Headers, ...]) -> pa.Array:
    if not any(heads):
        return pa.nulls(len(heads), _HEADERS)
    made = [[{"key": name, "value": data} for name, data in headers] if headers else None for headers in heads]
    return pa.array(made, _HEADERS)
