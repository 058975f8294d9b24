"""Did a broker keep its promises? A ledger of what was sent, acknowledged and read, and the rules it must satisfy.

Each record carries a stamp: who sent it, to which partition, as which number, and a checksum. So a record that is read
back speaks for itself, whatever happened in between. After the storm, feed the whole log to `log_record` and every
consumer's record to `consumed`, and ask for `violations()`:

- lost         a number was acknowledged and is not in the log, or a gap is left before a later number
- moved        it is in the log, but not at the offset that was acknowledged
- duplicated   a number is in the log twice
- reordered    a producer's numbers do not rise with the offsets
- torn         a value is no stamp, or not what was sent
- rewritten    a consumer saw another record at this offset than the log has now
- skipped      a consumer went on behind records that it never saw

Acknowledged means safe; not acknowledged means nothing: such a record may be there or not, but not twice, and a
producer that retries for ever leaves no gap before a number that is there.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable
from typing import NamedTuple


class Stamp(NamedTuple):
    """What a record says about itself."""

    producer: str
    partition: int
    number: int


def stamped(producer: str, partition: int, number: int, size: int = 0) -> bytes:
    """A value of at least `size` bytes that carries its stamp and notices damage."""
    head = f"{producer}|{partition}|{number}|".encode()
    body = head + b"." * max(0, size - len(head) - 8)
    return body + b"%08x" % zlib.crc32(body)


def read_stamp(value: bytes | None) -> Stamp | None:
    """None if the value is not a whole stamp."""
    if value is None or len(value) < 8:
        return None
    body, checksum = value[:-8], value[-8:]
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        producer, partition, number, _ = body.decode().split("|", 3)
        return Stamp(producer, int(partition), int(number))
    except ValueError:
        return None


class Violation(NamedTuple):
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class Checker:
    """Safe to feed from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: set[Stamp] = set()
        self._given_up: set[Stamp] = set()
        self._acknowledged: dict[Stamp, int | None] = {}
        self._log: dict[int, dict[int, bytes | None]] = {}
        self._consumed: dict[str, list[tuple[int, int, bytes | None]]] = {}

    # --- what happened

    def sent(self, stamp: Stamp) -> None:
        with self._lock:
            self._sent.add(stamp)

    def acknowledged(self, stamp: Stamp, offset: int | None = None) -> None:
        """The broker has said that the record is safe, at this offset if the client tells."""
        with self._lock:
            self._acknowledged[stamp] = offset if offset is not None and offset >= 0 else None

    def given_up(self, stamp: Stamp) -> None:
        """The producer has reported a failure: the record may be there or not, also with a gap behind it."""
        with self._lock:
            self._given_up.add(stamp)

    def consumed(self, consumer: str, partition: int, offset: int, value: bytes | None) -> None:
        with self._lock:
            self._consumed.setdefault(consumer, []).append((partition, offset, value))

    def log_record(self, partition: int, offset: int, value: bytes | None) -> None:
        """One record of the final log. Feed them all, in any order."""
        with self._lock:
            self._log.setdefault(partition, {})[offset] = value

    @property
    def acknowledged_count(self) -> int:
        return len(self._acknowledged)

    def snapshot(self) -> Checker:
        """The ledger as it is now, without a log: to compare with an image taken at this moment."""
        with self._lock:
            copy = Checker()
            copy._sent, copy._given_up = set(self._sent), set(self._given_up)
            copy._acknowledged = dict(self._acknowledged)
            return copy

    # --- the verdict

    def violations(self) -> list[Violation]:
        found: list[Violation] = []
        places: dict[Stamp, list[int]] = {}
        for partition, records in sorted(self._log.items()):
            for offset, value in sorted(records.items()):
                stamp = read_stamp(value)
                if stamp is None or stamp.partition != partition or stamp not in self._sent:
                    found.append(Violation("torn", f"offset {offset} of partition {partition} has {_shown(value)}"))
                else:
                    places.setdefault(stamp, []).append(offset)
        found += self._lost_or_moved(places)
        found += [
            Violation("duplicated", f"{_named(stamp)} is at offsets {offsets}")
            for stamp, offsets in sorted(places.items())
            if len(offsets) > 1
        ]
        found += self._reordered(places)
        found += self._gaps(places)
        for consumer, seen in sorted(self._consumed.items()):
            found += self._consumer_faults(consumer, seen)
        return found

    def _lost_or_moved(self, places: dict[Stamp, list[int]]) -> Iterable[Violation]:
        for stamp, offset in sorted(self._acknowledged.items()):
            if stamp not in places:
                where = "" if offset is None else f" (acknowledged at offset {offset})"
                yield Violation("lost", f"{_named(stamp)}{where}")
            elif offset is not None and offset not in places[stamp]:
                yield Violation("moved", f"{_named(stamp)} was acknowledged at {offset}, is at {places[stamp]}")

    def _reordered(self, places: dict[Stamp, list[int]]) -> Iterable[Violation]:
        latest: dict[tuple[str, int], tuple[int, Stamp]] = {}
        for stamp in sorted(places):
            offset = places[stamp][0]
            stream = (stamp.producer, stamp.partition)
            before = latest.get(stream)
            if before is not None and before[0] > offset:
                yield Violation("reordered", f"{_named(stamp)} at {offset} comes before {_named(before[1])}")
            latest[stream] = (max(offset, before[0] if before else offset), stamp)

    def _gaps(self, places: dict[Stamp, list[int]]) -> Iterable[Violation]:
        """A number that is there vouches for all that its producer sent to the partition before it."""
        last: dict[tuple[str, int], int] = {}
        for stamp in places:
            stream = (stamp.producer, stamp.partition)
            last[stream] = max(last.get(stream, -1), stamp.number)
        excused = self._given_up | set(self._acknowledged)  # the acknowledged ones were judged above
        for stamp in sorted(self._sent - set(places) - excused):
            if stamp.number < last.get((stamp.producer, stamp.partition), -1):
                yield Violation("lost", f"{_named(stamp)} is missing before a later one")

    def _consumer_faults(self, consumer: str, seen: list[tuple[int, int, bytes | None]]) -> Iterable[Violation]:
        reached: dict[int, int] = {}
        for partition, offset, value in seen:
            log = self._log.get(partition, {})
            if log.get(offset) != value or offset not in log:
                was, now = _shown(value), _shown(log.get(offset))
                yield Violation("rewritten", f"{consumer} read {was} at {partition}:{offset}, the log has {now}")
            position = reached.get(partition, min(log, default=0))
            if offset > position and any(skipped in log for skipped in range(position, offset)):
                yield Violation("skipped", f"{consumer} went from {position} to {offset} in partition {partition}")
            reached[partition] = max(position, offset + 1)


def _named(stamp: Stamp) -> str:
    return f"{stamp.producer}'s number {stamp.number} of partition {stamp.partition}"


def _shown(value: bytes | None) -> str:
    stamp = read_stamp(value)
    return _named(stamp) if stamp is not None else repr(value[:60] if value is not None else None)
