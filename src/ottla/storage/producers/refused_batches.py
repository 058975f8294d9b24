"""Batches of idempotent producers that were refused for something that passes: those behind them are refused alike,
until they come again.

A producer has several batches under way. When the first is refused because the disk has no room, too few replicas are
in sync, or this broker does not lead yet, and that is over before the next ones are looked at, these leave a gap in its
sequences. OUT_OF_ORDER_SEQUENCE_NUMBER would be true, and do harm: librdkafka then takes a new epoch, and sends again
under it all that it has not been told of, here and to other partitions, where it may be written already. And of a
producer that is not known here any sequence is taken, so that what was refused would come too late. Nobody has lost
anything, so the answer is the error of the first one, after which all of them come again in order. In memory only.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import CONTROL_BIT
from ottla.storage.producers.producer_state import ProducerState

# Of more producers than this the oldest is forgotten, and gets the other answer.
_PRODUCERS_MAX = 1_000
# So does one whose batch has not come again for as long as producers try by default (delivery.timeout.ms).
_FORGET_MS = 120_000


class _First(NamedTuple):
    """The batch that has to come next."""

    epoch: int
    sequence: int
    code: ErrorCode
    refused_ms: int


class RefusedBatches:
    __slots__ = ("_first",)

    def __init__(self) -> None:
        # By producer id.
        self._first: dict[int, _First] = {}

    def __bool__(self) -> bool:
        return bool(self._first)

    def note(self, header: tuple[int, ...], producers: ProducerState, code: ErrorCode, now_ms: int) -> None:
        """This batch was refused with `code`, and is not written."""
        producer_id, epoch, sequence = header[9], header[10], header[11]
        if producer_id < 0 or header[5] & CONTROL_BIT:
            return
        entry, known = producers.entries.get(producer_id), self._first.get(producer_id)
        if entry is not None and entry.epoch >= epoch:
            comes_next = sequence == entry.next_sequence and epoch == entry.epoch
        else:
            comes_next = known is None or known.epoch != epoch or known.sequence == sequence
        if not comes_next:
            return  # one of those behind it, or one that is there already
        self._first[producer_id] = _First(epoch, sequence, code, now_ms)
        if len(self._first) > _PRODUCERS_MAX:
            del self._first[next(iter(self._first))]

    def check(self, header: tuple[int, ...], producers: ProducerState, now_ms: int) -> None:
        """Raises ApiError for a batch that has to wait for one that was refused."""
        producer_id, epoch, sequence = header[9], header[10], header[11]
        first = self._first.get(producer_id)
        if first is None:
            return
        entry = producers.entries.get(producer_id)
        is_there_now = entry is not None and entry.epoch == epoch and entry.next_sequence != first.sequence
        is_over = first.epoch != epoch or is_there_now or now_ms - first.refused_ms > _FORGET_MS
        if is_over or sequence == first.sequence:
            del self._first[producer_id]
            return
        raise ApiError(
            first.code,
            f"{producers.name}: sequence {first.sequence} of producer {producer_id}, which comes first, was refused",
        )
