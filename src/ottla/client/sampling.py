"""How large records are at some places of a log: found out by fetching a batch or a few there.

Kafka tells which offsets a log has, not how many bytes lie between two of them. The header of a batch has both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.cluster import Unreachable
from ottla.client.fetching import NAMES_UNTIL
from ottla.client.lookup import ClusterReader, Passing, check
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import FetchRequest

_WAIT_MS_MAX = 500
_HEADER = struct.Struct(">qi11xi")  # base offset, length, last offset delta
_OVERHEAD_BYTES = 12
_TRIES_MAX = 3
# What a look asks for at first. A larger batch comes whole if it is the first of an answer, else with another one.
_LOOK_BYTES = 64 * 1024
_LOOK_GROWTH = 16


class Sample(NamedTuple):
    """Whole batches that lie one after the other."""

    start: int
    end: int
    size_bytes: int
    # On average, over all offsets of the batches.
    bytes_per_offset: float


Position = tuple[TopicPartition, int]


def look_at(reader: ClusterReader, positions: Sequence[Position]) -> dict[Position, Sample]:
    """What is at each of these offsets; nothing where it could not be found out at once."""
    found: dict[Position, Sample] = {}
    left = list(dict.fromkeys(positions))
    while left:
        # A request names a partition once.
        together = dict(reversed(left))
        try:
            for leader, partitions in reader.by_leader(together).items():
                found |= _look(reader, leader, {one: together[one] for one in partitions})
        except (OSError, Passing, Unreachable):
            reader.forget()
            return found  # whoever reads will meet it again, and wait for it or tell of it
        left = [(one, offset) for one, offset in left if together[one] != offset]
    return found


def _look(reader: ClusterReader, leader: int, wanted: dict[TopicPartition, int]) -> dict[Position, Sample]:
    found: dict[Position, Sample] = {}
    left, look_bytes, tries = dict(wanted), _LOOK_BYTES, 0
    while left and tries < _TRIES_MAX:
        request = _request(reader, left, min(look_bytes, reader.settings.partition_fetch_bytes_max))
        answer = reader.cluster.broker(leader).call(request, NAMES_UNTIL)
        check(answer.error_code, "a fetch")
        samples = _samples(answer, left)
        tries = 0 if samples else tries + 1
        look_bytes *= _LOOK_GROWTH
        for one, sample in samples.items():
            found[one, left.pop(one)] = sample
    return found


def _request(reader: ClusterReader, wanted: Mapping[TopicPartition, int], look_bytes: int) -> FetchRequest:
    by_topic: dict[str, list[Any]] = {}
    for one, offset in wanted.items():
        row = FetchRequest.FetchPartition(partition=one.partition, fetch_offset=offset, partition_max_bytes=look_bytes)
        by_topic.setdefault(one.topic, []).append(row)
    return FetchRequest(
        max_wait_ms=_WAIT_MS_MAX,
        min_bytes=1,
        max_bytes=reader.settings.fetch_bytes_max,
        isolation_level=int(reader.settings.is_committed_only),
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=name, partitions=rows) for name, rows in by_topic.items()],
    )


def _samples(answer: Any, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Sample]:
    found: dict[TopicPartition, Sample] = {}
    for topic in answer.responses:
        for row in topic.partitions:
            one = TopicPartition(topic.topic, row.partition_index)
            sample = measured(row.records or b"", wanted[one])
            if not row.error_code and sample is not None:
                found[one] = sample
    return found


def measured(records: Any, start: int) -> Sample | None:
    """The whole batches at the beginning of a fetched answer, from the offset that was asked for."""
    view = memoryview(records)
    position, first, end = 0, start, start
    while position + _HEADER.size <= len(view):
        base, length, last_delta = _HEADER.unpack_from(view, position)
        size = _OVERHEAD_BYTES + length
        if size <= _OVERHEAD_BYTES or position + size > len(view):
            break
        first, end = min(first, base), max(end, base + last_delta + 1)
        position += size
    return Sample(start, end, position, position / (end - first)) if end > start else None
