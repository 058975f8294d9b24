"""What a partition remembers of its producers: sequences for idempotence, epochs for fencing, open transactions.

The rules are Kafka's (ProducerAppendInfo). Of each producer the last five batches are kept: a batch with the sequences
of one of them is a duplicate and is answered with the offsets it got the first time. A batch must otherwise follow the
last one, or start a higher epoch at sequence 0. A producer that is not known may begin anywhere: its records may have
been deleted, or it expired (since KIP-360 Kafka does not answer UNKNOWN_PRODUCER_ID). Sequences wrap from 2^31-1 to 0.
While a transaction is being verified (KIP-890) it may not: with transactions v2 every one begins at 0, and before that
the lowest sequence that was seen comes first, or a batch that overtakes one to be sent again would take its place.

Beyond Kafka's rules: a transactional batch repeats only what is in the transaction that is open. librdkafka that aborts
while it waits for the answer to a batch gives that batch's sequence to the next transaction's first one. Taken for a
repetition, as by Kafka, it would be acknowledged and lost. UNKNOWN_PRODUCER_ID makes it abort and take a new epoch.

`check` decides and changes nothing; `record` is called once the bytes are in the log, and also when a log is replayed.
Open transactions hold the last stable offset back until their marker is below the high watermark.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import CODEC_MASK, HEADER_SIZE, TRANSACTIONAL_BIT
from ottla.records.marker import ABORT, COMMIT, MARKER, MARKER_START, VALUE_LENGTH
from ottla.records.record import CorruptRecords, read_records
from ottla.storage.producers.producer_snapshot import ProducerSnapshotEntry
from ottla.storage.results import Origin

BATCHES_KEPT = 5
_RECORDS_AT = HEADER_SIZE
_MARKER_SIZE = _RECORDS_AT + MARKER.size
_CODEC_AT = 22  # the low byte of the attributes
_SEQUENCE_MASK = 0x7FFFFFFF
_NO_OFFSET = -1

# (last sequence, last offset, offset delta, timestamp) of one batch; a plain tuple, since one is made per append.
Batch = tuple[int, int, int, int]


class Verification:
    """A transaction that wants to begin here (Kafka's VerificationStateEntry): the lowest sequence seen so far."""

    __slots__ = ("begins_at_zero", "epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, begins_at_zero: bool, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.begins_at_zero = begins_at_zero
        self.since_ms = now_ms


class Guard:
    """Held by whoever waits for word of a coordinator on another broker (Kafka's VerificationGuard): good until the
    transaction begins or ends here."""

    __slots__ = ("since_ms",)

    def __init__(self, now_ms: int) -> None:
        self.since_ms = now_ms


class EndMarker(NamedTuple):
    """The control record that ends a transaction."""

    commit: bool
    coordinator_epoch: int


class CompletedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerEntry:
    """`next_sequence` follows the last batch; with no batch of this epoch yet it is 0."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_seen_ms",
        "last_timestamp",
        "next_sequence",
        "partial",
        "txn_first_offset",
    )

    def __init__(self, epoch: int, now_ms: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        self.batches: deque[Batch] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.txn_first_offset = _NO_OFFSET
        # From a snapshot, which keeps one batch: the log may have more of the last five.
        self.partial = False
        # By the broker's clock: batches may carry timestamps of long ago, and their producer is no less alive.
        self.last_seen_ms = now_ms

    def add(self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int) -> None:
        self.batches.append((last_sequence, last_offset, offset_delta, timestamp))
        self.next_sequence = (last_sequence + 1) & _SEQUENCE_MASK
        self.last_timestamp = timestamp

    def start_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.partial = False
            self.next_sequence = 0

    def find(self, first_sequence: int, last_sequence: int) -> Batch | None:
        for batch in self.batches:
            if batch[0] == last_sequence and (batch[0] - batch[2]) & _SEQUENCE_MASK == first_sequence:
                return batch
        return None


class ProducerDescription(NamedTuple):
    """One line of DescribeProducers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class ProducerState:
    """`end_offset` says up to where the log is reflected here."""

    __slots__ = ("_decided", "_guards", "_ongoing", "_verifications", "end_offset", "entries", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0
        # First offset -> producer of undecided transactions; offsets only grow, so the first key is the lowest.
        self._ongoing: dict[int, int] = {}
        # First offset -> marker's offset of decided ones whose marker is not below the high watermark yet.
        self._decided: dict[int, int] = {}
        # By producer id; in memory only.
        self._verifications: dict[int, Verification] = {}
        self._guards: dict[int, Guard] = {}

    # -- deciding --

    def verify(self, producer_id: int, epoch: int, sequence: int, begins_at_zero: bool, now_ms: int) -> None:
        """A transaction of a producer that is not known wants to begin with this batch, if its coordinator agrees."""
        held = self._verifications.get(producer_id)
        if held is None or epoch > held.epoch:
            self._verifications[producer_id] = Verification(epoch, sequence, begins_at_zero, now_ms)
        elif epoch == held.epoch:
            held.lowest_sequence = min(held.lowest_sequence, sequence)

    def guard(self, producer_id: int, now_ms: int) -> Guard:
        held = self._guards.get(producer_id)
        if held is None:
            held = self._guards[producer_id] = Guard(now_ms)
        return held

    def is_guarded_by(self, producer_id: int, guard: Guard) -> bool:
        """Nothing of this producer's transactions has come or ended since the guard was taken."""
        return self._guards.get(producer_id) is guard

    def check(self, header: tuple[Any, ...], origin: Origin) -> Batch | None:
        """Whether this batch may come now: the batch it repeats, or None to go on. Raises ApiError."""
        producer_id, epoch, sequence, delta = header[9], header[10], header[11], header[6]
        entry = self.entries.get(producer_id)
        is_client = origin is Origin.CLIENT
        if entry is None:
            if is_client and producer_id in self._verifications:
                self._check_first(self._verifications[producer_id], producer_id, sequence)
            return None
        if is_client and epoch == entry.epoch:
            duplicate = entry.find(sequence, (sequence + delta) & _SEQUENCE_MASK)
            if duplicate is not None:
                if header[5] & TRANSACTIONAL_BIT and not 0 <= entry.txn_first_offset <= duplicate[1]:
                    raise ApiError(
                        ErrorCode.UNKNOWN_PRODUCER_ID,
                        f"sequence {sequence} of producer {producer_id} in {self.name} is of a transaction that ended",
                    )
                return duplicate
        self.check_epoch(entry, producer_id, epoch, origin)
        if is_client:
            expected = entry.next_sequence if epoch == entry.epoch else 0
            if sequence != expected:
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id} epoch {epoch} sent sequence {sequence} to {self.name},"
                    f" where {expected} comes next",
                )
        if entry.txn_first_offset >= 0 and not header[5] & TRANSACTIONAL_BIT and origin is not Origin.REPLICATION:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has an open transaction in {self.name} and wrote outside of it",
            )
        return None

    def _check_first(self, verification: Verification, producer_id: int, sequence: int) -> None:
        expected = 0 if verification.begins_at_zero else verification.lowest_sequence
        if sequence > expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins a transaction in {self.name} with sequence {sequence},"
                f" where {expected} comes first",
            )

    def check_epoch(self, entry: ProducerEntry, producer_id: int, epoch: int, origin: Origin) -> None:
        if epoch < entry.epoch and origin is not Origin.REPLICATION:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {producer_id} in {self.name} is over: {entry.epoch} was seen",
            )

    def check_marker(self, header: tuple[Any, ...], marker: EndMarker, origin: Origin) -> None:
        entry = self.entries.get(header[9])
        if entry is None:
            return
        self.check_epoch(entry, header[9], header[10], origin)
        if marker.coordinator_epoch < entry.coordinator_epoch and origin is not Origin.REPLICATION:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} for {self.name} is over:"
                f" {entry.coordinator_epoch} was seen",
            )

    # -- remembering --

    def record(self, header: tuple[Any, ...], base_offset: int, now_ms: int) -> None:
        """A batch with a producer id is in the log at `base_offset`."""
        producer_id, epoch, delta = header[9], header[10], header[6]
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(epoch, now_ms)
            self._verifications.pop(producer_id, None)
        elif entry.epoch != epoch:
            entry.start_epoch(epoch)
        # Coordinators number nothing.
        last_sequence = (header[11] + delta) & _SEQUENCE_MASK if header[11] >= 0 else -1
        entry.add(last_sequence, base_offset + delta, delta, header[8])
        entry.last_seen_ms = now_ms
        if header[5] & TRANSACTIONAL_BIT and entry.txn_first_offset < 0:
            entry.txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id
            self._guards.pop(producer_id, None)

    def record_marker(self, header: tuple[Any, ...], marker: EndMarker, now_ms: int) -> CompletedTxn | None:
        """A transaction's end is in the log. None when no record of the transaction is in this partition."""
        offset, producer_id, epoch = header[0], header[9], header[10]
        self._guards.pop(producer_id, None)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(epoch, now_ms)
            self._verifications.pop(producer_id, None)
        first_offset = entry.txn_first_offset
        entry.start_epoch(epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header[8]
        entry.last_seen_ms = now_ms
        entry.txn_first_offset = _NO_OFFSET
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        self._decided[first_offset] = offset
        return CompletedTxn(producer_id, first_offset, offset, not marker.commit)

    def record_emptied_marker(self, header: tuple[Any, ...]) -> None:
        """Compaction took all of a transaction, and the record of its marker. What is left of that ends the
        transaction for whoever still knows it as open, and fences older epochs."""
        producer_id, epoch = header[9], header[10]
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(epoch, header[8])
        self._ongoing.pop(entry.txn_first_offset, None)
        entry.txn_first_offset = _NO_OFFSET
        entry.start_epoch(epoch)
        entry.last_timestamp = header[8]

    # -- asking --

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """First offset of the earliest transaction that readers of committed data must not pass yet."""
        if not self._ongoing and not self._decided:
            return None
        replicated = [first for first, last in self._decided.items() if last < high_watermark]
        for first in replicated:
            del self._decided[first]
        lowest = min(self._decided, default=None)
        if self._ongoing:
            ongoing = next(iter(self._ongoing))
            lowest = ongoing if lowest is None else min(lowest, ongoing)
        return lowest

    def stable_after(self, completed: CompletedTxn) -> int:
        """The last stable offset once `completed` is decided: what the transaction index stores with it."""
        return next(iter(self._ongoing), completed.last_offset + 1)

    def describe(self) -> list[ProducerDescription]:
        return [
            ProducerDescription(
                producer_id,
                entry.epoch,
                entry.batches[-1][0] if entry.batches else -1,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for producer_id, entry in self.entries.items()
        ]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent this long, unless they have an open transaction; returns how many."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.txn_first_offset < 0 and now_ms - entry.last_seen_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        for producer_id, verification in list(self._verifications.items()):
            if now_ms - verification.since_ms >= expiration_ms:
                del self._verifications[producer_id]
        for producer_id, guard in list(self._guards.items()):
            if now_ms - guard.since_ms >= expiration_ms:
                del self._guards[producer_id]
        return len(expired)

    # -- snapshots --

    def snapshot_entries(self) -> list[ProducerSnapshotEntry]:
        return [
            ProducerSnapshotEntry(
                producer_id,
                entry.epoch,
                *(entry.batches[-1][:3] if entry.batches else (-1, -1, 0)),
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for producer_id, entry in self.entries.items()
        ]

    def restore(self, entries: Iterable[ProducerSnapshotEntry], end_offset: int, now_ms: int) -> None:
        """Become what a snapshot says. A snapshot keeps the last batch of each producer only."""
        self.entries.clear()
        self._ongoing.clear()
        self._decided.clear()
        self._guards.clear()
        self.end_offset = end_offset
        for saved in entries:
            entry = self.entries[saved.producer_id] = ProducerEntry(saved.epoch, now_ms)
            if saved.last_offset >= 0:
                entry.add(saved.last_sequence, saved.last_offset, saved.offset_delta, saved.timestamp)
                entry.partial = True
            entry.last_timestamp = saved.timestamp
            entry.coordinator_epoch = saved.coordinator_epoch
            entry.txn_first_offset = saved.current_txn_first_offset
        open_txns = [(entry.txn_first_offset, producer_id) for producer_id, entry in self.entries.items()]
        self._ongoing.update(transaction for transaction in sorted(open_txns) if transaction[0] >= 0)


def read_marker(batch: Any, position: int = 0) -> EndMarker | None:
    """The marker inside a control batch; None for control records of other kinds."""
    if len(batch) - position >= _MARKER_SIZE:
        before, _, kind, between, _, coordinator_epoch, after = MARKER.unpack_from(batch, position + _RECORDS_AT)
        codec = batch[position + _CODEC_AT] & CODEC_MASK
        if (before, between, after, codec) == (MARKER_START, VALUE_LENGTH, 0, 0) and kind in (ABORT, COMMIT):
            return EndMarker(kind == COMMIT, coordinator_epoch)
    for record in read_records(batch, position):
        if record.key is None or record.value is None or len(record.key) < 4:
            raise CorruptRecords("a control record without a type")
        kind = struct.unpack_from(">h", record.key, 2)[0]
        if kind not in (0, 1):
            return None
        return EndMarker(kind == 1, struct.unpack_from(">i", record.value, 2)[0])
    return None
