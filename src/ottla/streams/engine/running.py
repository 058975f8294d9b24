"""On an executor: the records of a micro-batch through the tasks of a topology, as the work of a task of Spark's.

Spark gives a task ranges of offsets, and it reads the records itself; where SQL expressions run on Spark's columns,
Spark gives the records. All of a partition number come to the same Spark task (option `wholePartitions` of the source).
Those of one topology task are processed in the order of their times where several topics meet, and of their offsets
within one.
"""

from __future__ import annotations

import heapq
import itertools
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.settings import ClientSettings
from ottla.common import lineage
from ottla.common.failures import Retriable
from ottla.kernel.header_columns import with_header
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts
from ottla.spark.source.ranges import RangeReading
from ottla.streams.engine.changelogs import to_records
from ottla.streams.engine.folding import folded
from ottla.streams.engine.garbage import not_collected, set_aside
from ottla.streams.engine.global_tables import open_global
from ottla.streams.engine.identity import task_topic
from ottla.streams.engine.memory import RECORDS_BETWEEN_LOOKS, StateTooLarge, refusal
from ottla.streams.engine.native_columns import ENTERS, FOLDS, LEAVES, NATIVE, TARGET
from ottla.streams.engine.outputs import ClusterTopics
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
from ottla.streams.sql.steps import Folded
from ottla.streams.state.specs import changelog_topic
from ottla.streams.topology import ProcessorNode, SourceNode, SubTopology, Topology

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
    # How the records of ranges are read; None where Spark gives the records.
    reading: RangeReading | None = None
    # What Spark has done before records come here, by source.
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
        partitions = self.partition_counts
        queues: dict[tuple[int, int], dict[str, list[_Row]]] = {}
        to_fold = RowsToFold()
        try:
            with not_collected():
                for whole in batches:
                    check_room_for_batch(self.application_id)
                    batch = whole
                    if self.stages:
                        yield from leaving(whole, self.application_id if self.has_lineage else None)
                        batch = to_fold.taken_from(whole)
                    for topic, partition, rows in _by_partition(batch):
                        if partition >= partitions[topic]:
                            raise PartitionsAdded(
                                f"the topic '{topic}' has got partitions since the application started."
                            )
                        by_topic = queues.setdefault((subs[topic].number, partition), {})
                        by_topic.setdefault(topic, []).extend(rows)
        except MemoryError:
            queues.clear()
            drop_copies()
            raise batch_too_large(self.application_id, "none is left") from None
        for topic, partition in to_fold.places():
            if partition >= partitions[topic]:
                raise PartitionsAdded(f"the topic '{topic}' has got partitions since the application started.")
            queues.setdefault((subs[topic].number, partition), {})
        numbered = {sub.number: sub for sub in subs.values()}
        out = _Rows()
        shared = self._global_stores() if queues else {}
        for (number, partition), by_topic in sorted(queues.items()):
            try:
                with set_aside():
                    yield from self._run_task(numbered[number], partition, by_topic, to_fold, shared, out, counts)
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
        by_topic: dict[str, list[_Row]],
        to_fold: RowsToFold,
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
        for number, (topic, record) in enumerate(_in_order(by_topic)):
            task.process(topic, *record)
            if len(rows) >= ROWS_MAX:
                yield out.taken()
            if number % RECORDS_BETWEEN_LOOKS == 0:
                check_room(self._state_of(task_id), state)
        for stage in self.stages.values():
            for topic in to_fold.topics_of(self._real_topics(stage), partition):
                for offset, key, value, time_ms in self._folded(task, stage, to_fold.rows(topic, partition)):
                    task.process(topic, offset, key, value, time_ms, NO_HEADERS, True)
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

    def _real_topics(self, stage: NativeStage) -> list[str]:
        node = self.topology.nodes[stage.source]
        assert isinstance(node, SourceNode)
        return [self.topology.real_name(self.application_id, topic) for topic in node.topics]

    def _folded(self, task: StreamTask, stage: NativeStage, rows: pa.Table) -> Iterable[tuple[int, bytes, Any, int]]:
        assert stage.aggregate is not None
        node = self.topology.nodes[stage.aggregate]
        assert isinstance(node, ProcessorNode) and node.native is not None and isinstance(node.native.what, Folded)
        found, without = folded(rows, stage.aggregate, node.native.what.aggregation)
        if without:
            task.context.dropped[DROPPED_NULL] += without
        return found


def _counted(batches: Iterable[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
    counts[RECORDS_IN] = 0
    for batch in batches:
        counts[RECORDS_IN] += batch.num_rows
        yield batch


# offset, key, value, time in ms, headers; and True if Spark has done the operators of its stage
_Row = tuple[Any, ...]


class RowsToFold:
    """By topic and partition, until their task runs."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int], list[pa.Table]] = {}

    def taken_from(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Gives what else is in the batch, without the rows that have left already."""
        how_far = batch.column(NATIVE)
        is_folded = pc.fill_null(pc.equal(how_far, FOLDS), False)
        if pc.any(is_folded).as_py():
            table = pa.Table.from_batches([batch.filter(is_folded)])
            pairs = table.group_by(["topic", "partition"]).aggregate([]).to_pydict()
            for topic, partition in zip(pairs["topic"], pairs["partition"], strict=True):
                of_both = pc.and_(pc.equal(table["topic"], topic), pc.equal(table["partition"], partition))
                self._tables.setdefault((topic, partition), []).append(table.filter(of_both))
        return batch.filter(pc.or_(pc.is_null(how_far), pc.equal(pc.fill_null(how_far, 0), ENTERS)))

    def places(self) -> Iterable[tuple[str, int]]:
        return self._tables

    def topics_of(self, topics: list[str], partition: int) -> list[str]:
        return [topic for topic in topics if (topic, partition) in self._tables]

    def rows(self, topic: str, partition: int) -> pa.Table:
        return pa.concat_tables(self._tables[topic, partition])


def leaving(batch: pa.RecordBatch, writer: str | None = None) -> Iterator[pa.RecordBatch]:
    """Rows that are ready for their topics go as they are; with a writer they say which record they were made of."""
    is_ready = pc.fill_null(pc.equal(batch.column(NATIVE), LEAVES), False)
    if not pc.any(is_ready).as_py():
        return
    ready = batch.filter(is_ready)
    columns = [ready.column(name) for name in (TARGET, "key", "value", "timestamp", "headers")]
    columns.insert(1, pa.nulls(ready.num_rows, pa.int32()))
    if writer is not None:
        columns[-1] = with_header(columns[-1], lineage.HEADER, _lineage_column(ready, writer))
    arrays = [column.cast(kind.type) for column, kind in zip(columns, SCHEMA, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _lineage_column(batch: pa.RecordBatch, writer: str) -> pa.Array:
    places = [batch.column(name).cast(pa.string()) for name in ("topic", "partition", "offset")]
    return pc.binary_join_element_wise(pc.binary_join_element_wise(*places, "/"), writer, " ").cast(pa.binary())


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[str, int, Iterable[_Row]]]:
    """The records of each topic and partition; the source gives many of one after the other."""
    offsets, keys, values = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
    times = batch.column("timestamp").cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64()).to_pylist()
    heads = _headers(batch.column("headers"))
    rows: Iterable[_Row]
    if NATIVE in batch.schema.names:
        is_done = pc.is_valid(batch.column(NATIVE)).to_pylist()
        rows = zip(offsets, keys, values, times, heads, is_done, strict=True)
    else:
        rows = zip(offsets, keys, values, times, heads, strict=True)
    topics, partitions = batch.column("topic"), batch.column("partition")
    if batch.num_rows and len(topics.unique()) == 1 and len(partitions.unique()) == 1:
        yield topics[0].as_py(), partitions[0].as_py(), rows
        return
    for topic, partition, row in zip(topics.to_pylist(), partitions.to_pylist(), rows, strict=True):
        yield topic, partition, (row,)


def _headers(column: pa.Array) -> Iterable[Headers]:
    if not len(column.flatten()):
        return itertools.repeat(NO_HEADERS, len(column))
    return [
        NO_HEADERS if not own else tuple((header["key"], header["value"]) for header in own)
        for own in column.to_pylist()
    ]


def _in_order(by_topic: dict[str, list[_Row]]) -> Iterator[tuple[str, _Row]]:
    """Of the topics' next records always the one with the earliest time."""
    if len(by_topic) == 1:
        ((topic, rows),) = by_topic.items()
        for row in rows:
            yield topic, row
        return
    heads = [(rows[0][3], topic, 0) for topic, rows in sorted(by_topic.items())]
    heapq.heapify(heads)
    while heads:
        _, topic, place = heapq.heappop(heads)
        rows = by_topic[topic]
        yield topic, rows[place]
        if place + 1 < len(rows):
            heapq.heappush(heads, (rows[place + 1][3], topic, place + 1))


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
