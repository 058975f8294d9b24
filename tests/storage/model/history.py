"""The model: what was appended, what became of it, and what readers must see. Plain lists and dicts, no files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ottla.records.record import Record
from tests.storage.model.batches import Batch

SEQUENCE_MASK = 0x7FFFFFFF


class Fate(Enum):
    PLAIN = "outside of transactions"
    OPEN = "not decided yet"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass
class Producer:
    """What a partition knows of a producer; `recent` are its last batches of this epoch."""

    epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    txn_first: int = -1
    recent: deque[Batch] = field(default_factory=lambda: deque(maxlen=5))

    @property
    def next_sequence(self) -> int:
        return (self.last_sequence + 1) & SEQUENCE_MASK

    def see(self, batch: Batch) -> None:
        if batch.epoch != self.epoch:
            self.epoch = batch.epoch
            self.last_sequence = -1
            self.recent.clear()
        self.last_timestamp = batch.max_timestamp
        if batch.commit is not None:
            self.coordinator_epoch = batch.coordinator_epoch
            self.txn_first = -1
            return
        delta = batch.last - batch.base
        self.last_sequence = -1 if batch.sequence < 0 else (batch.sequence + delta) & SEQUENCE_MASK
        self.recent.append(batch)
        if batch.transactional and self.txn_first < 0:
            self.txn_first = batch.base


class History:
    def __init__(self, *, delete_retention_ms: int) -> None:
        self.delete_retention_ms = delete_retention_ms
        self.start = 0
        self.end = 0
        # Every batch as it was appended, less what a power cut took.
        self.events: list[Batch] = []
        # What stands in the log now, and every form in which a batch ever stood there.
        self.stored: dict[int, Batch] = {}
        self.forms: dict[int, set[Batch]] = {}
        self.producers: dict[int, Producer] = {}
        # Producer -> offset below which its batches are no longer remembered.
        self.forgotten: dict[int, int] = {}
        # Offset of a tombstone -> when a round first passed it by: its retention counts from there.
        self.first_cleaned_ms: dict[int, int] = {}
        self.fates: dict[int, Fate] = {}

    # -- what happens --

    def append(self, batch: Batch) -> None:
        assert batch.base == self.end
        self.events.append(batch)
        self.stored[batch.base] = batch
        self.forms.setdefault(batch.base, set()).add(batch)
        self.end = batch.last + 1
        self._see(batch)
        self._decide()

    def _see(self, batch: Batch) -> None:
        if batch.producer_id < 0 or batch.base < self.forgotten.get(batch.producer_id, 0):
            return
        self.producers.setdefault(batch.producer_id, Producer(batch.epoch)).see(batch)

    def _decide(self) -> None:
        """The fate of every batch of data, from the markers behind it."""
        fates: dict[int, Fate] = {}
        ongoing: dict[int, list[int]] = {}
        for one in self.events:
            if one.commit is not None:
                for base in ongoing.pop(one.producer_id, ()):
                    fates[base] = Fate.COMMITTED if one.commit else Fate.ABORTED
            elif one.transactional:
                ongoing.setdefault(one.producer_id, []).append(one.base)
                fates[one.base] = Fate.OPEN
            else:
                fates[one.base] = Fate.PLAIN
        self.fates = fates

    def forget_producer(self, producer_id: int, below: int) -> None:
        """Remember what its batches from `below` on say."""
        del self.producers[producer_id]
        self.forgotten[producer_id] = below
        for one in self.events:
            if one.producer_id == producer_id:
                self._see(one)

    def store(self, batches: Iterable[Batch]) -> None:
        """This is what stands in the log from now on."""
        self.stored = {one.base: one for one in batches}
        for one in self.stored.values():
            self.forms.setdefault(one.base, set()).add(one)

    def lose(self, bases: set[int], end: int) -> None:
        """A power cut took these batches, and everything from `end` on."""
        self.events = [one for one in self.events if one.base not in bases and one.base < end]
        self.end = end
        self.start = min(self.start, end)
        self.forms = {base: forms for base, forms in self.forms.items() if base not in bases and base < end}
        # Who was forgotten up to an offset that is gone is remembered from there on, if anything is left of it.
        self.forgotten = {one: min(offset, end) for one, offset in self.forgotten.items()}
        self.producers = {}
        for one in self.events:
            self._see(one)
        self._decide()

    # -- what must be seen --

    @property
    def last_stable_offset(self) -> int:
        firsts = [one.txn_first for one in self.producers.values() if one.txn_first >= 0]
        return max(self.start, min(firsts, default=self.end))

    def visible(self) -> list[Batch]:
        return [one for _, one in sorted(self.stored.items()) if one.last >= self.start]

    def committed(self, start: int) -> list[Record]:
        stable = self.last_stable_offset
        return [
            record
            for batch in self.visible()
            if self.fates.get(batch.base, Fate.ABORTED) in (Fate.PLAIN, Fate.COMMITTED)
            for record in batch.records
            if start <= record.offset < stable
        ]

    def table(self) -> dict[bytes | None, bytes]:
        """Key -> value by everything that was ever appended and committed, whatever compaction took."""
        stable = self.last_stable_offset
        return table(
            record
            for batch in self.events
            if self.fates.get(batch.base) in (Fate.PLAIN, Fate.COMMITTED)
            for record in batch.records
            if self.start <= record.offset < stable
        )

    def first_since(self, timestamp: int) -> Record | None:
        return next(
            (
                record
                for batch in self.visible()
                for record in batch.records
                if record.timestamp >= timestamp and record.offset >= self.start
            ),
            None,
        )

    def latest(self, segments: Sequence[int]) -> Record | None:
        """The first record with the largest timestamp, as Kafka finds it: in the first segment that has a batch with
        that timestamp, and not at all when that record is deleted or was compacted away."""
        batches = list(self.stored.values())
        bounds = list(zip(segments, [*segments[1:], self.end], strict=True))
        live = [(first, end) for first, end in bounds if end > self.start or end == self.end]
        largest: tuple[int, int, int] | None = None
        for first, end in live:
            stamps = [one.max_timestamp for one in batches if first <= one.base < end]
            if stamps and (largest is None or max(stamps) > largest[0]):
                largest = (max(stamps), first, end)
        if largest is None:
            return None
        timestamp, first, end = largest
        inside = (record for _, one in sorted(self.stored.items()) if first <= one.base < end for record in one.records)
        return next((one for one in inside if one.timestamp >= timestamp and one.offset >= self.start), None)

    # -- compaction --

    def check_compaction(self, after: dict[int, Batch], first_dirty: int, end: int, now_ms: int, *, done: bool) -> None:
        """Only what is superseded, aborted or a tombstone past its time may go; if the round was `done`, what is
        superseded below `end` has gone."""
        known = self._last_of_each_key(first_dirty, end)
        for base, before in self.stored.items():
            left = after.get(base)
            assert left is None or left.shape == before.shape, f"{before} became {left}"
            if before.commit is not None or not before.records:
                continue
            kept = {one.offset: one for one in left.records} if left is not None else {}
            for record in before.records:
                if record.offset in kept:
                    assert kept.pop(record.offset) == record
                    superseded = known.get(record.key, -1) > record.offset
                    assert not (done and superseded and record.offset < end), f"{record} should be compacted away"
                else:
                    self._check_removal(record, self.fates[base], known, end, now_ms)
            assert not kept, f"{kept} came from nowhere"
        for batch in self.stored.values():
            for record in batch.records:
                if record.value is None and record.offset < end:
                    self.first_cleaned_ms.setdefault(record.offset, now_ms)

    def _last_of_each_key(self, first: int, end: int) -> dict[bytes | None, int]:
        return {
            record.key: record.offset
            for batch in self.events
            if self.fates.get(batch.base) in (Fate.PLAIN, Fate.COMMITTED)
            for record in batch.records
            if first <= record.offset < end
        }

    def _check_removal(self, record: Record, fate: Fate, known: dict[bytes | None, int], end: int, now_ms: int) -> None:
        if fate is Fate.ABORTED:
            return
        assert fate is not Fate.OPEN, f"{record} of an open transaction is gone"
        assert record.offset < end, f"{record} is gone, behind the end of the round at {end}"
        if known.get(record.key, -1) > record.offset:
            return
        cleaned_ms = self.first_cleaned_ms.get(record.offset, now_ms)
        due = record.value is None and now_ms >= cleaned_ms + self.delete_retention_ms
        assert due, f"{record} is gone, and was the last one of its key"


def table(records: Iterable[Record]) -> dict[bytes | None, bytes]:
    found: dict[bytes | None, bytes] = {}
    for one in records:
        found.pop(one.key, None)
        if one.value is not None:
            found[one.key] = one.value
    return found
