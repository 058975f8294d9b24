"""Were transactions all or nothing? A ledger of transactions begun, ended and read, and the rules it must satisfy.

Each transaction books money from account to account: its entries, in several partitions, add up to nothing. A record
says which transaction it is part of, which entry of how many it is, and the amount; so what is read back speaks for
itself. A transaction may also commit its own number as the offset of its producer's group. After the storm, feed what a
reader of committed records finds to `log_record`, each live consumer's records to `consumed`, the groups' offsets to
`group_offset`, and ask for `violations()`:

- lost           a commit was answered, and an entry is not there
- aborted        an abort was answered, and an entry was read
- torn           of a transaction that ended in the dark some entries are there and some not; or a value is no entry
- duplicated     an entry is there twice
- reordered      a producer's transactions do not rise with the offsets, or entries within one
- dirty          a consumer saw an entry that readers of committed records do not find any more
- skipped        a consumer went on behind entries that it never saw
- offset         a group's offset is not the number of the last transaction that was committed with one
- unbalanced     the entries that are there do not add up to nothing

A transaction whose end was not answered (the client died, or was told nothing) may be there or not, but whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.testing.checker import Violation
from ottla.testing.ledger import Ledger, title_of
from ottla.testing.sealed import seal, unseal


class Entry(NamedTuple):
    """What a record says about itself."""

    producer: str
    number: int  # of the transaction, from 1
    part: int  # which of its entries, from 0
    parts: int  # how many it has
    partition: int
    amount: int

    @property
    def transaction(self) -> tuple[str, int]:
        return self.producer, self.number


def entries(producer: str, number: int, partitions: Sequence[int]) -> list[Entry]:
    """A transfer over these partitions: what leaves the first arrives in the others."""
    amounts = [10 + (number * 7 + part) % 90 for part in range(1, len(partitions))]
    return [
        Entry(producer, number, part, len(partitions), partition, amount)
        for part, (partition, amount) in enumerate(zip(partitions, [-sum(amounts), *amounts], strict=True))
    ]


def entry_value(entry: Entry) -> bytes:
    return seal(entry)


def read_entry(value: bytes | None) -> Entry | None:
    """None if the value is not a whole entry."""
    found = unseal(value)
    if found is None or len(found[1]) != len(Entry._fields) - 1:
        return None
    return Entry(found[0], *found[1])


class TransactionChecker:
    """Safe to feed from several threads."""

    def __init__(self) -> None:
        self._ledger: Ledger[Entry] = Ledger()
        self._lock = self._ledger.lock
        self._with_offset: set[tuple[str, int]] = set()
        self._log: dict[int, dict[int, bytes | None]] = {}
        self._consumed: dict[str, list[tuple[int, int, bytes | None]]] = {}
        self._offsets: dict[str, int] = {}

    # --- what happened

    def begun(self, written: Sequence[Entry], *, with_offset: bool = False) -> None:
        """Before anything is sent."""
        self._ledger.begun(written)
        if with_offset:
            with self._lock:
                self._with_offset.add(written[0].transaction)

    def ended(self, producer: str, number: int, *, committed: bool) -> None:
        """The broker has said so."""
        self._ledger.ended(producer, number, committed=committed)

    def consumed(self, consumer: str, partition: int, offset: int, value: bytes | None) -> None:
        """By a reader of committed records, in the order it came."""
        with self._lock:
            self._consumed.setdefault(consumer, []).append((partition, offset, value))

    def log_record(self, partition: int, offset: int, value: bytes | None) -> None:
        """One record that a reader of committed records finds in the end. Feed them all, in any order."""
        with self._lock:
            self._log.setdefault(partition, {})[offset] = value

    def group_offset(self, producer: str, offset: int) -> None:
        """What the producer's group has committed in the end; 0 for nothing."""
        with self._lock:
            self._offsets[producer] = offset

    @property
    def begun_count(self) -> int:
        return len(self._ledger.written)

    @property
    def committed_count(self) -> int:
        return self._ledger.committed_count

    def last_number(self, producer: str) -> int:
        return self._ledger.last_number(producer)

    # --- the verdict

    def violations(self) -> list[Violation]:
        found: list[Violation] = []
        places: dict[Entry, list[int]] = {}
        for partition, records in sorted(self._log.items()):
            for offset, value in sorted(records.items()):
                entry = read_entry(value)
                if entry is None or entry.partition != partition or not self._ledger.is_written(entry):
                    found.append(Violation("torn", f"offset {offset} of partition {partition} has {value!r}"))
                else:
                    places.setdefault(entry, []).append(offset)
        found += self._ledger.faults(places)
        found += [
            Violation("duplicated", f"{_named(entry)} is at offsets {offsets}")
            for entry, offsets in sorted(places.items())
            if len(offsets) > 1
        ]
        found += self._reordered(places)
        for consumer, seen in sorted(self._consumed.items()):
            found += self._consumer_faults(consumer, seen)
        found += self._offset_faults(places)
        balance = sum(entry.amount * len(offsets) for entry, offsets in places.items())
        if balance:
            found.append(Violation("unbalanced", f"all entries together are {balance}, not 0"))
        return found

    def _reordered(self, places: dict[Entry, list[int]]) -> Iterable[Violation]:
        latest: dict[tuple[str, int], tuple[int, Entry]] = {}
        for entry in sorted(places):  # by producer, number, part
            stream, offset = (entry.producer, entry.partition), places[entry][0]
            before = latest.get(stream)
            if before is not None and before[0] > offset:
                yield Violation("reordered", f"{_named(entry)} at {offset} comes before {_named(before[1])}")
            else:
                latest[stream] = (offset, entry)

    def _consumer_faults(self, consumer: str, seen: list[tuple[int, int, bytes | None]]) -> Iterable[Violation]:
        reached: dict[int, int] = {}
        ordered = {partition: sorted(records) for partition, records in self._log.items()}
        for partition, offset, value in seen:
            log = self._log.get(partition, {})
            if offset not in log or log[offset] != value:
                entry = read_entry(value)
                kind = (
                    "aborted"
                    if entry is not None and self._ledger.outcomes.get(entry.transaction) is False
                    else "dirty"
                )
                yield Violation(kind, f"{consumer} read {value!r} at {partition}:{offset}, which is not there now")
            position = reached.get(partition, 0)
            due = _first_from(ordered.get(partition, []), position)
            if due is not None and due < offset:
                yield Violation("skipped", f"{consumer} went from {position} to {offset} in partition {partition}")
            reached[partition] = max(position, offset + 1)

    def _offset_faults(self, places: dict[Entry, list[int]]) -> Iterable[Violation]:
        for producer, offset in sorted(self._offsets.items()):
            committed = [entry.number for entry in places if entry.producer == producer]
            expected = max((number for number in committed if (producer, number) in self._with_offset), default=0)
            if offset != expected:
                yield Violation("offset", f"{producer}'s group is at {offset}, its last commit was number {expected}")


def _first_from(offsets: Sequence[int], start: int) -> int | None:
    at = bisect_left(offsets, start)
    return offsets[at] if at < len(offsets) else None


def _named(entry: Entry) -> str:
    return f"entry {entry.part} of {title_of(entry.transaction)}"
