"""The second pass of a round: what stays of each batch.

A record stays when it is the last one of its key, or lies behind what the map knows. A tombstone that stays gets its
batch a delete horizon (KIP-534): attribute bit 6 and, in place of the base timestamp, the time from which the tombstone
may go. A batch keeps its base offset, last offset, sequence and epoch whatever goes out of it, and one that ends with
the last sequence of an active producer stays as an empty batch (KAFKA-5490), so that the producer can go on after a
restart. Batches that lose nothing are copied as they are; records that stay are copied as the bytes they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from ottla.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from ottla.records.compression import Codec, DecompressionError, compress
from ottla.records.record import DECOMPRESSED_BYTES_MAX, assemble_batch, read_varint, records_bytes, write_varint
from ottla.storage.compaction.offset_map import OffsetMap
from ottla.storage.compaction.transaction_walk import TransactionWalk
from ottla.storage.compaction.walk import UnreadableRecords, Walked, timestamp_delta, walk
from ottla.storage.producers.producer_state import read_marker


class Verdict(Enum):
    KEEP = "as it is"
    DROP = "not at all"


class LastRecord:
    """Where an active producer's last data ends (-1: there is none, only its markers are left), and its epoch."""

    __slots__ = ("epoch", "last_data_offset")

    def __init__(self, last_data_offset: int, epoch: int) -> None:
        self.last_data_offset = last_data_offset
        self.epoch = epoch


def open_batch(chunk: bytes, at: int, header: BatchHeader) -> Walked:
    """The records of the batch at `at`. Raises UnreadableRecords."""
    if not header.attributes & CODEC_MASK:
        return walk(chunk, at + HEADER_SIZE, at + header.size, header.record_count)
    try:
        plain = records_bytes(chunk, at, header, DECOMPRESSED_BYTES_MAX)
    except (DecompressionError, ValueError) as error:
        raise UnreadableRecords(str(error)) from None
    return walk(plain, 0, len(plain), header.record_count)


class BatchFilter:
    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: TransactionWalk,
        last_records: Mapping[int, LastRecord],
        *,
        upper_offset: int,
        now_ms: int,
        new_horizon_ms: int,
    ) -> None:
        self._find = offset_map.offsets.get
        self._latest = offset_map.latest
        self._transactions = transactions
        self._last_records = last_records
        self._upper_offset = upper_offset
        self._now_ms = now_ms
        self._new_horizon_ms = new_horizon_ms
        self.records_removed = 0
        # Batches whose records make no sense: their producer wrote garbage. They stay, whatever keys they have.
        self.batches_unreadable = 0

    def apply(self, chunk: bytes, at: int, header: BatchHeader) -> Verdict | bytearray:
        """What stays of the batch at `at`: a verdict, or the batch that takes its place."""
        if header.is_control:
            return self._apply_to_marker(chunk, at, header)
        if self._transactions.is_aborted(header):
            return self._without_records(header)
        if header.record_count == 0:
            return self._without_records(header)
        if header.base_offset > self._latest:
            return Verdict.KEEP
        try:
            walked = open_batch(chunk, at, header)
        except UnreadableRecords:
            self.batches_unreadable += 1
            return Verdict.KEEP
        return self._apply_to_records(header, walked)

    def _apply_to_marker(self, chunk: bytes, at: int, header: BatchHeader) -> Verdict | bytearray:
        marker = read_marker(chunk, at) if header.record_count else None
        is_done = self._transactions.marker_is_done(header, marker)
        if header.record_count == 0 or (is_done and self._is_past_horizon(header)):
            return self._without_records(header)
        if is_done and not header.has_delete_horizon:
            walked = open_batch(chunk, at, header)
            return self._rebuild(header, walked, range(header.record_count), set_horizon=True)
        return Verdict.KEEP

    def _is_past_horizon(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._now_ms

    def _apply_to_records(self, header: BatchHeader, walked: Walked) -> Verdict | bytearray:
        kept: Sequence[int] = range(header.record_count)
        found = list(map(self._find, walked.keys))
        # In the part that is clean already hardly any key is in the map.
        if found.count(None) != len(found):
            base = header.base_offset
            offsets = [base + delta for delta in walked.deltas]
            if found != offsets:
                pairs = enumerate(zip(found, offsets, strict=True))
                kept = [number for number, (last, offset) in pairs if last is None or last <= offset]
        set_horizon = False
        if walked.tombstones:
            tombstones = set(walked.tombstones)
            if self._is_past_horizon(header):
                kept = [number for number in kept if number not in tombstones]
            elif not header.has_delete_horizon:
                set_horizon = not tombstones.isdisjoint(kept)
        if not kept:
            return self._without_records(header)
        if len(kept) == header.record_count and not set_horizon:
            return Verdict.KEEP
        self.records_removed += header.record_count - len(kept)
        return self._rebuild(header, walked, kept, set_horizon=set_horizon)

    def _without_records(self, header: BatchHeader) -> Verdict | bytearray:
        """An empty batch where one must stand, else nothing."""
        self.records_removed += header.record_count
        # The last batch of a round stays as well, so that what the log reached is not forgotten.
        if not (self._ends_a_producer(header) or header.last_offset + 1 == self._upper_offset):
            return Verdict.DROP
        if header.record_count == 0:
            return Verdict.KEEP
        kinds = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
        return _assemble(header, b"", header.attributes & kinds, NO_TIMESTAMP, header.max_timestamp, 0)

    def _ends_a_producer(self, header: BatchHeader) -> bool:
        last = self._last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _rebuild(self, header: BatchHeader, walked: Walked, kept: Sequence[int], *, set_horizon: bool) -> bytearray:
        data, starts = walked.data, walked.starts
        max_timestamp = header.max_timestamp
        # With log-append time the header has the time of all records, and nobody looks at their deltas.
        if not header.uses_log_append_time and len(kept) < header.record_count:
            max_timestamp = header.base_timestamp + max(timestamp_delta(data, starts[number]) for number in kept)
        base_timestamp, attributes = header.base_timestamp, header.attributes
        if set_horizon:
            base_timestamp, attributes = self._new_horizon_ms, attributes | DELETE_HORIZON_BIT
        if set_horizon and not header.uses_log_append_time:
            later = header.base_timestamp - base_timestamp
            body = b"".join([_shift_timestamp(data, starts[number], later) for number in kept])
        else:
            body = b"".join([data[starts[number] : starts[number + 1]] for number in kept])
        codec = Codec(header.codec)
        packed = compress(codec, body) if codec else body
        return _assemble(header, packed, attributes, base_timestamp, max_timestamp, len(kept))


def _assemble(
    header: BatchHeader, body: Any, attributes: int, base_timestamp: int, max_timestamp: int, count: int
) -> bytearray:
    return assemble_batch(
        body,
        attributes=attributes,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=count,
    )


def _shift_timestamp(data: bytes, start: int, by_ms: int) -> bytes:
    """The record at `start` with `by_ms` added to its timestamp delta."""
    length, at = read_varint(data, start)
    delta, after = read_varint(data, at + 1)
    record = bytearray(data[at : at + 1])
    write_varint(record, delta + by_ms)
    record += data[after : at + length]
    sized = bytearray()
    write_varint(sized, len(record))
    return bytes(sized + record)
