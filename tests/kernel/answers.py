"""Fetch answers made of batches, and the rows that a plain reader finds in them."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa

from ottla.records import batch as v2
from ottla.records.record import Record, build_batch

EVERYTHING = (0, 2**62)
COMMIT, ABORT = 1, 0


def rows(columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Key, value, offset, timestamp in microseconds, type of timestamp, headers as pairs."""
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    found = [column.to_pylist() for column in plain]
    if len(found) == 6:
        found[5] = [row and [(one["key"], one["value"]) for one in row] for row in found[5]]
    return list(zip(*found, strict=True))


def read_all(
    module: ModuleType, data: Any, start: int = 0, end: int = 2**62, aborted: Any = (), **options: Any
) -> list[tuple[Any, ...]]:
    limits = {name: options.pop(name) for name in ("rows_max", "bytes_max") if name in options}
    decoder = module.Decoder(data, start, end, aborted, **{"with_headers": True, **options})
    found: list[tuple[Any, ...]] = []
    while (columns := decoder.next_columns(**limits)) is not None:
        for column in columns:
            column.validate(full=True)
        found += rows(columns)
    return found


def expected(records: Sequence[Record], kind: int = 0) -> list[tuple[Any, ...]]:
    return [(one.key, one.value, one.offset, one.timestamp * 1000, kind, list(one.headers) or None) for one in records]


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    """The control batch that ends a transaction."""
    record = Record(offset, 1_000, bytes([0, 0, 0, kind]), bytes(6))
    return bytes(
        build_batch(
            [record], attributes=v2.TRANSACTIONAL_BIT | v2.CONTROL_BIT, producer_id=producer_id, producer_epoch=0
        )
    )


def transactional(records: Sequence[Record], producer_id: int) -> bytes:
    return bytes(
        build_batch(
            records, attributes=v2.TRANSACTIONAL_BIT, producer_id=producer_id, producer_epoch=0, base_sequence=0
        )
    )


def numbered(first: int, count: int) -> list[Record]:
    return [Record(first + n, 1_700_000_000_000 + n, b"k%d" % (first + n), b"v" * (n % 50), ()) for n in range(count)]
