"""Rows of a topic as the worker hands them over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
NOW_MS = 1_600_000_000_000


def rows(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    topics: Sequence[str] | None = None,
    headers: Sequence[Any] | None = None,
) -> Any:
    count = len(values)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys or [None] * count, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(topics or ["t"] * count, pa.string()),
            pa.array([0] * count, pa.int32()),
            pa.array(range(count), pa.int64()),
            pa.array([NOW_MS + index for index in range(count)], pa.int64()),
            pa.array(headers or [None] * count, HEADERS),
        ],
        names=["key", "value", "topic", "partition", "offset", "timestamp", "headers"],
    )
