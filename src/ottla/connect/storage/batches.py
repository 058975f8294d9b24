"""A few records as record batches, for topics that are written beside those of connectors."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Sequence

import pyarrow as pa

from ottla.common.ids import TopicPartition
from ottla.kernel.encode import BatchEncoder, partition_for_key

Pair = tuple[bytes | None, bytes | None]


def batches(topic: str, partitions: int, records: Iterable[Pair]) -> list[tuple[TopicPartition, bytes]]:
    """Each in the partition that its key belongs to, as Kafka's producer finds it; those of a partition in order."""
    grouped: dict[int, list[Pair]] = {}
    for key, value in records:
        number = 0 if key is None else partition_for_key(key, partitions)
        grouped.setdefault(number, []).append((key, value))
    return [(TopicPartition(topic, number), batch) for number, pairs in grouped.items() for batch in _encoded(pairs)]


def _encoded(pairs: Sequence[Pair]) -> list[bytes]:
    encoder = BatchEncoder()
    now_ms = int(time.time() * 1000)
    done = encoder.append(
        array("i", [0] * len(pairs)),
        pa.array([key for key, _ in pairs], pa.binary()),
        pa.array([value for _, value in pairs], pa.binary()),
        None,
        pa.array([now_ms] * len(pairs), pa.int64()),
    )
    return [batch for _, batch, _ in (*done, *encoder.finish())]
