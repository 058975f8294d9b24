"""On an executor: the ranges of one split, fetched, decoded and handed to Spark as Arrow record batches.

Python workers are used for many tasks, so the connections of one task serve the next. Spark's cost per record batch is
that of some hundred rows, so small pieces of several partitions are put together.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ottla.client.fetching import Fetched, OffsetRange, OnLoss, UnreadableRecords, fetch_ranges
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.kernel.decode import Decoder
from ottla.kernel.errors import CorruptRecords
from ottla.spark.source.loss import loss_handler

ROWS_MAX = 10_000
# As much as stays in a processor's cache while it is copied to Spark.
BYTES_MAX = 1024 * 1024

_readers: dict[tuple[int, ClientSettings], ClusterReader] = {}


def kept_reader(settings: ClientSettings) -> ClusterReader:
    """One for each process and cluster: a fork must not share its parent's sockets."""
    key = (os.getpid(), settings)
    if key not in _readers:
        _readers[key] = ClusterReader(settings)
    return _readers[key]


def read_split(
    ranges: Sequence[OffsetRange],
    settings: ClientSettings,
    schema: Any,
    *,
    with_headers: bool,
    fail_on_data_loss: bool,
) -> Iterator[Any]:
    """Record batches of `schema`."""
    on_loss = loss_handler(fail_on_data_loss)
    yield from read_ranges(kept_reader(settings), ranges, schema, on_loss, with_headers=with_headers)


def read_ranges(
    reader: ClusterReader, ranges: Sequence[OffsetRange], schema: Any, on_loss: OnLoss, *, with_headers: bool
) -> Generator[Any, None, None]:
    """Record batches of `schema`, those of a partition in their order."""
    fetched = fetch_ranges(reader, ranges, on_loss)
    pieces = (piece for answer in fetched for piece in _pieces(answer, reader.settings, schema, with_headers))
    yield from _joined(pieces)


def _pieces(fetched: Fetched, settings: ClientSettings, schema: Any, with_headers: bool) -> Iterator[Any]:
    decoder = Decoder(
        fetched.records, fetched.start, fetched.range.end, fetched.aborted, with_headers, settings.check_crcs
    )
    while (columns := _next_columns(decoder, fetched.range)) is not None:
        key, value, *rest = columns
        topic, partition = _constants(fetched.range.topic, fetched.range.partition)
        here = [topic[: len(key)], partition[: len(key)]]
        yield pa.RecordBatch.from_arrays([key, value, *here, *rest], schema=schema)


def _next_columns(decoder: Decoder, where: OffsetRange) -> list[Any] | None:
    try:
        return decoder.next_columns(ROWS_MAX, BYTES_MAX)
    except CorruptRecords as error:
        raise UnreadableRecords(f"partition {where.where} cannot be read: {error}.") from None


@lru_cache(maxsize=64)
def _constants(topic: str, partition: int) -> tuple[Any, Any]:
    return pa.repeat(topic, ROWS_MAX), pa.repeat(pa.scalar(partition, pa.int32()), ROWS_MAX)


def _joined(pieces: Iterator[Any]) -> Iterator[Any]:
    small: list[Any] = []
    rows = size = 0
    for piece in pieces:
        small.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        if rows >= ROWS_MAX // 2 or size >= BYTES_MAX:
            yield _join(small)
            small, rows, size = [], 0, 0
    if small:
        yield _join(small)


def _join(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
