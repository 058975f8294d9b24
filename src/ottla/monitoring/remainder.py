"""Whether anything is left for a group to read between its commit and the end of a log.

Offsets are not records: the marker that ends a transaction takes one, and so do the records of an aborted one. A group
that has read everything stays before the last marker, with a lag of 1 and a commit that never moves, which would be
called STALL for ever. So a short remainder that does not change is looked into once: batch by batch, by their headers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.client.connection import BrokerConnection
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.protocol.messages import FetchRequest

if TYPE_CHECKING:
    from ottla.monitoring.sampling import ClusterLook

# A longer remainder is not one of markers.
OFFSETS_MAX = 100
_FETCH_BYTES = 64 * 1024
_NAMES_UNTIL = 12
# base offset, length, (epoch, magic, crc,) attributes, last offset delta, (timestamps,) producer id
_HEADER = struct.Struct(">qi9xhi16xq")
_OVERHEAD_BYTES = 12
_CONTROL, _TRANSACTIONAL = 0x20, 0x10
_LOOKS_AT_ONCE = 50

Place = tuple[str, TopicPartition]


class Remainders:
    def __init__(self) -> None:
        # Where each group was, and the log ended, at the last look; and what was found there.
        self._seen: dict[Place, tuple[int, int]] = {}
        self._known: dict[tuple[TopicPartition, int, int], bool] = {}

    def look(self, look: ClusterLook, broker: Callable[[int], BrokerConnection]) -> None:
        seen: dict[Place, tuple[int, int]] = {}
        looked = 0
        for name, group in look.groups.items():
            for partition, offset in group.committed.items():
                end = look.ends.get(partition)
                if end is None or not 0 < end - offset <= OFFSETS_MAX:
                    continue
                place, span = (name, partition), (offset, end)
                seen[place] = span
                key = (partition, *span)
                if self._seen.get(place) == span and key not in self._known and looked < _LOOKS_AT_ONCE:
                    looked += 1
                    self._known[key] = self._is_empty(broker, look.partitions[partition].leader, *key)
                if self._known.get(key):
                    look.without_records.add(place)
        wanted = {(partition, *span) for (_, partition), span in seen.items()}
        self._seen = seen
        self._known = {key: found for key, found in self._known.items() if key in wanted}

    @staticmethod
    def _is_empty(
        broker: Callable[[int], BrokerConnection], leader: int, partition: TopicPartition, start: int, end: int
    ) -> bool:
        asked = FetchRequest.FetchPartition(
            partition=partition.partition, fetch_offset=start, partition_max_bytes=_FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            isolation_level=1,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=partition.topic, partitions=[asked])],
        )
        try:
            answer = broker(leader).call(request, _NAMES_UNTIL)
        except (OttlaError, OSError):
            return False
        rows = [row for topic in answer.responses for row in topic.partitions]
        return len(rows) == 1 and not rows[0].error_code and is_without_records(rows[0], start, end)


def is_without_records(row: Any, start: int, end: int) -> bool:
    """Whether all of [start, end) is in the fetched batches, and none has a record for a read_committed consumer."""
    aborted: dict[int, int] = {one.producer_id: one.first_offset for one in row.aborted_transactions or ()}
    view, position, reached = memoryview(row.records or b""), 0, start
    while position + _HEADER.size <= len(view) and reached < end:
        base, length, attributes, last_delta, producer_id = _HEADER.unpack_from(view, position)
        last = base + last_delta
        if last >= start and not attributes & _CONTROL:
            first_aborted = aborted.get(producer_id) if attributes & _TRANSACTIONAL else None
            if first_aborted is None or base < first_aborted:
                return False
        reached = max(reached, last + 1)
        position += _OVERHEAD_BYTES + length
    return reached >= end
