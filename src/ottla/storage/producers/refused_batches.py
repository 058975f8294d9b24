"""Batches of idempotent producers that the disk refused: those behind them are refused alike, until they come again.

A producer has several batches under way. When the disk has no room for the first, the next ones leave a gap in its
sequences. OUT_OF_ORDER_SEQUENCE_NUMBER would be true, and do harm: librdkafka then takes a new epoch, and sends again
under it what it has under way to other partitions too, where it may be written already. Nobody has lost anything, so
the answer is the disk's error, after which all of them come again in order. In memory only.
"""

from __future__ import annotations

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import CONTROL_BIT
from ottla.storage.producers.producer_state import ProducerState

# Of more producers than this the oldest is forgotten, and gets the other answer.
_PRODUCERS_MAX = 1_000


class RefusedBatches:
    __slots__ = ("_first",)

    def __init__(self) -> None:
        # By producer id: epoch and sequence of the first batch that was refused.
        self._first: dict[int, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._first)

    def note(self, header: tuple[int, ...]) -> None:
        """The disk has refused this batch."""
        producer_id, epoch, sequence = header[9], header[10], header[11]
        if producer_id < 0 or header[5] & CONTROL_BIT:
            return
        if self._first.setdefault(producer_id, (epoch, sequence))[0] != epoch:
            self._first[producer_id] = (epoch, sequence)
        if len(self._first) > _PRODUCERS_MAX:
            del self._first[next(iter(self._first))]

    def check(self, header: tuple[int, ...], producers: ProducerState) -> None:
        """Raises KAFKA_STORAGE_ERROR for a batch that has to wait for one that was refused."""
        producer_id, epoch, sequence = header[9], header[10], header[11]
        first = self._first.get(producer_id)
        if first is None:
            return
        entry = producers.entries.get(producer_id)
        is_there_now = entry is not None and entry.epoch == epoch and entry.next_sequence != first[1]
        if first == (epoch, sequence) or first[0] != epoch or is_there_now:
            del self._first[producer_id]
            return
        raise ApiError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{producers.name}: the disk refused sequence {first[1]} of producer {producer_id}, which comes first",
        )
