"""How large records are at some places of a log: found out by fetching a batch or a few there.

Kafka tells which offsets a log has, not how many bytes lie between two of them. The header of a batch has both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.fetching import NAMES_UNTIL, fetch_request
from ottla.client.lookup import ClusterReader
from ottla.common.failures import Retriable, check
from ottla.common.ids import TopicPartition

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
                found |= _look(reader, leader, {partition: together[partition] for partition in partitions})
        except (OSError, Retriable):
            reader.close()
            return found  # whoever reads will meet it again, and wait for it or tell of it
        left = [(partition, offset) for partition, offset in left if together[partition] != offset]
    return found


def _look(reader: ClusterReader, leader: int, wanted: dict[TopicPartition, int]) -> dict[Position, Sample]:
    found: dict[Position, Sample] = {}
    left, look_bytes, tries = dict(wanted), _LOOK_BYTES, 0
    while left and tries < _TRIES_MAX:
        settings = reader.settings
        request = fetch_request(settings, left, partition_bytes_max=min(look_bytes, settings.partition_fetch_bytes_max))
        answer = reader.broker(leader).call(request, NAMES_UNTIL)
        check(answer.error_code, "a fetch")
        samples = _samples(answer, left)
        tries = 0 if samples else tries + 1
        look_bytes *= _LOOK_GROWTH
        for partition, sample in samples.items():
            found[partition, left.pop(partition)] = sample
    return found


def _samples(answer: Any, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Sample]:
    found: dict[TopicPartition, Sample] = {}
    for topic in answer.responses:
        for row in topic.partitions:
            partition = TopicPartition(topic.topic, row.partition_index)
            sample = measured(row.records or b"", wanted[partition])
            if not row.error_code and sample is not None:
                found[partition] = sample
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
