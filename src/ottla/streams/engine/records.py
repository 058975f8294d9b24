"""Record batches of records, as the source gives them, to the records of tasks."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ottla.streams.record import NO_HEADERS, Headers

# offset, key, value, time in ms, headers; and key and value after the operators of a stage, if it had one
Row = tuple[Any, ...]


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """The records of each topic and partition; the source gives many of one after the other."""
    topics, partitions = batch.column("topic"), batch.column("partition")
    if batch.num_rows and len(topics.unique()) == 1 and len(partitions.unique()) == 1:
        yield topics[0].as_py(), partitions[0].as_py(), batch
        return
    places = zip(topics.to_pylist(), partitions.to_pylist(), strict=True)
    begun = 0
    for (topic, partition), group in itertools.groupby(places):
        count = sum(1 for _ in group)
        yield topic, partition, batch.slice(begun, count)
        begun += count


def rows_of(batch: pa.RecordBatch) -> Iterable[Row]:
    offsets, keys, values = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
    return zip(offsets, keys, values, times_ms(batch).to_pylist(), headers_of(batch.column("headers")), strict=True)


def times_ms(batch: pa.RecordBatch) -> Any:
    return batch.column("timestamp").cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())


def headers_of(column: pa.Array) -> Iterable[Headers]:
    if not len(column.flatten()):
        return itertools.repeat(NO_HEADERS, len(column))
    return [
        NO_HEADERS if not own else tuple((header["key"], header["value"]) for header in own)
        for own in column.to_pylist()
    ]


def in_order(by_topic: dict[str, list[Row]]) -> Iterator[tuple[str, Row]]:
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
