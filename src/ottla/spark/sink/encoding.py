"""The part of the sink that runs on executors: rows of one task to compressed record batches.

There is no shuffle: a task writes to all the partitions that its rows belong to, and keeps their order.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.address import ClusterAddress
from ottla.common.errors import OttlaError
from ottla.common.lineage import HEADER
from ottla.kernel.encode import BatchEncoder, Encoded, route
from ottla.kernel.header_columns import with_header
from ottla.spark.sink.shape import LINEAGE, shaped_arrow


@dataclass(frozen=True)
class BatchLineage:
    """Which query a batch is of, and the header of rows that do not say themselves what they were made of."""

    writer: str
    of_batch: bytes

    def headers(self, columns: dict[str, Any], rows: int) -> pa.Array:
        own = columns.get(LINEAGE)
        if own is None:
            values = pa.repeat(pa.scalar(self.of_batch, pa.binary()), rows)
        else:
            named = pc.binary_join_element_wise(own.cast(pa.string()), self.writer, " ").cast(pa.binary())
            values = named.fill_null(self.of_batch) if named.null_count else named
        return with_header(columns.get("headers"), HEADER, values)


@dataclass(frozen=True)
class EncodePlan:
    """All that a task has to know; goes to executors with it."""

    address: ClusterAddress
    topic: str | None
    # Of the topics that are known already; a task looks others up.
    partition_counts: dict[str, int] = field(default_factory=dict)
    codec: int = 0
    level: int | None = None
    batch_bytes: int = 512 * 1024
    # Where rows without a key begin, so that small batches do not all go to partition 0.
    turn: int = 0
    # Where rows are to say what they were made of.
    lineage: BatchLineage | None = None

    def encode(self, rows: Iterator[pa.RecordBatch], task: int) -> Iterator[tuple[str, int, int, bytes]]:
        """(topic, partition, record count, batch) of one task. Raises OttlaError for rows that cannot be written."""
        table = _Slots(self, task)
        encoder = BatchEncoder(codec=self.codec, level=self.level, batch_bytes=self.batch_bytes)
        for batch in rows:
            if batch.num_rows:
                columns = shaped_arrow(batch)
                if self.lineage is not None:
                    columns["headers"] = self.lineage.headers(columns, batch.num_rows)
                yield from table.named(_append(encoder, table, columns, batch.num_rows))
        yield from table.named(encoder.finish())


class _Slots:
    """Numbers for the partitions of all topics that a task meets."""

    def __init__(self, plan: EncodePlan, task: int) -> None:
        self._plan = plan
        self.default_topic = plan.topic
        self._turn = plan.turn + task
        self._index: dict[str, int] = {}
        self._names: list[str] = []
        self.bases: list[int] = []
        self.counts: list[int] = []
        self._places: list[tuple[str, int]] = []

    def index(self, topic: str) -> int:
        if topic not in self._index:
            count = self._plan.partition_counts.get(topic) or look_up_partitions(self._plan.address, topic)
            self._index[topic] = len(self._names)
            self._names.append(topic)
            self.bases.append(len(self._places))
            self.counts.append(count)
            self._places += [(topic, partition) for partition in range(count)]
        return self._index[topic]

    def sticky(self) -> list[int]:
        """Rows without a key stay together for a while, then go on to the next partition."""
        self._turn += 1
        return [self._turn % count for count in self.counts]

    def named(self, done: list[Encoded]) -> Iterator[tuple[str, int, int, bytes]]:
        for slot, data, count in done:
            yield *self._places[slot], count, data


def _append(encoder: BatchEncoder, slots: _Slots, columns: dict[str, Any], rows: int) -> list[Encoded]:
    topics = _topic_indexes(slots, columns.get("topic"))
    keys = columns["key"] if "key" in columns else pa.nulls(rows, pa.binary())
    timestamps = columns.get("timestamp")
    now_ms = int(time.time() * 1000)
    if timestamps is None:
        timestamps = pa.repeat(pa.scalar(now_ms, pa.int64()), rows)
    elif timestamps.null_count:
        timestamps = timestamps.fill_null(now_ms)
    try:
        targets: array[int] = route(keys, columns.get("partition"), topics, slots.bases, slots.counts, slots.sticky())
    except ValueError as problem:
        raise OttlaError(f"a row cannot be written: {problem}.") from None
    return encoder.append(targets, keys, columns["value"], columns.get("headers"), timestamps)


def _topic_indexes(slots: _Slots, column: Any) -> Any:
    default = slots.default_topic
    if column is None:
        assert default is not None
        slots.index(default)
        return None
    if column.null_count:
        if default is None:
            raise OttlaError("a row has no topic: the column 'topic' is null, and no topic is named for such rows.")
        column = column.fill_null(default)
    encoded = column.dictionary_encode()
    numbers = pa.array([slots.index(name) for name in encoded.dictionary.to_pylist()], pa.int32())
    return numbers.take(encoded.indices)


def look_up_partitions(address: ClusterAddress, topic: str) -> int:
    from ottla.client.cluster import ClusterClient

    with ClusterClient(address) as cluster:
        return len(cluster.leaders([topic]))
