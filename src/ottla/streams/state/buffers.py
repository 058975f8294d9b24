"""Two stores that only operators use: records of a join that wait for a partner, and updates that are held back.

pending joins    <time> <side> <key> <number>   the record's value
held updates     i <key>                        where it is: the time that it waits for
                 o <time> <key>                 the update
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.streams import serdes
from ottla.streams.record import NO_TIMESTAMP, Change, Headers, RecordMetadata
from ottla.streams.state.bytes_store import BytesStore, prefix_end
from ottla.streams.state.specs import StoreSpec

_LONG, _NUMBER = struct.Struct(">q"), struct.Struct(">I")


class PendingRecord(NamedTuple):
    place: bytes
    timestamp: int
    is_left: bool
    key: bytes
    value: Any


class PendingJoins:
    remembered = ("stream_time_ms", "min_time_ms", "sequence")

    def __init__(self, spec: StoreSpec, data: BytesStore, topic: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.data = data
        self.stream_time_ms = NO_TIMESTAMP
        # Of the records that wait, where the last look at them ended; None if that is not known.
        self.min_time_ms: int | None = None
        self.sequence = 0
        # Of the left side and of the right.
        right = spec.other_value_serde or spec.value_serde
        self._write = {True: serdes.writer(spec.value_serde, topic), False: serdes.writer(right, topic)}
        self._read = {True: serdes.reader(spec.value_serde, topic), False: serdes.reader(right, topic)}

    def add(self, timestamp: int, is_left: bool, key: bytes, value: Any) -> None:
        if self.min_time_ms is None or timestamp < self.min_time_ms:
            self.min_time_ms = timestamp
        self.sequence = (self.sequence + 1) & 0x7FFFFFFF
        place = _LONG.pack(timestamp) + bytes([is_left]) + key + _NUMBER.pack(self.sequence)
        self.data.put(place, self._write[is_left](value))

    def remove(self, timestamp: int, is_left: bool, key: bytes) -> None:
        """All records of this key, side and moment: they have a partner."""
        prefix = _LONG.pack(timestamp) + bytes([is_left]) + key
        for place, _ in self.data.range(prefix, prefix_end(prefix)):
            if len(place) == len(prefix) + 4 and place.startswith(prefix):
                self.data.put(place, None)

    def discard(self, record: PendingRecord) -> None:
        self.data.put(record.place, None)

    def all(self) -> Iterator[PendingRecord]:
        """In the order of time; of one moment the right side first."""
        for place, value in self.data.range(b"", None):
            is_left = bool(place[8])
            yield PendingRecord(place, _LONG.unpack_from(place)[0], is_left, place[9:-4], self._read[is_left](value))

    def approximate_num_entries(self) -> int:
        return len(self.data)


Held = tuple[Any, Change, int, Headers, tuple[str, int, int] | None]


class HeldUpdates:
    remembered = ("record_count", "size_bytes")

    def __init__(self, spec: StoreSpec, data: BytesStore, topic: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.data = data
        self.record_count = 0
        self.size_bytes = 0
        self._key_bytes = serdes.writer(spec.key_serde, topic)
        self._key_of = serdes.reader(spec.key_serde, topic)
        self._value_bytes = serdes.writer(spec.value_serde, topic)
        self._value_of = serdes.reader(spec.value_serde, topic)

    def hold(
        self, key: Any, change: Change, due_ms: int, timestamp: int, headers: Headers, metadata: RecordMetadata | None
    ) -> None:
        """In place of the update of this key that is there already, if one is."""
        name = self._key_bytes(key)
        assert name is not None
        known = self.data.get(b"i" + name)
        old = self._value_bytes(change.old)
        if known is None:
            place = b"o" + _LONG.pack(due_ms) + name
            self.data.put(b"i" + name, place[1:9])
            self.record_count += 1
        else:
            place = b"o" + known + name
            before = self.data.get(place)
            assert before is not None
            self.size_bytes -= len(place) + len(before)
            # Those below have last seen what was there before the first update that is held.
            old = _parts(before)[1]
        entry = _packed(self._value_bytes(change.new), old, timestamp, headers, metadata)
        self.size_bytes += len(place) + len(entry)
        self.data.put(place, entry)

    def first_ms(self) -> int | None:
        first = self.data.first(b"o")
        return None if first is None else _LONG.unpack_from(first[0], 1)[0]

    def take_first(self) -> Held:
        first = self.data.first(b"o")
        assert first is not None
        place, entry = first
        self.data.put(place, None)
        self.data.put(b"i" + place[9:], None)
        self.record_count -= 1
        self.size_bytes -= len(place) + len(entry)
        new, old, timestamp, headers, metadata = _parts(entry)
        return self._key_of(place[9:]), Change(self._value_of(new), self._value_of(old)), timestamp, headers, metadata

    def approximate_num_entries(self) -> int:
        return self.record_count


def _packed(
    new: bytes | None, old: bytes | None, timestamp: int, headers: Headers, metadata: RecordMetadata | None
) -> bytes:
    texts = [[name, None if value is None else value.hex()] for name, value in headers]
    about = json.dumps([timestamp, texts, metadata, *(None if each is None else len(each) for each in (new, old))])
    head = about.encode()
    return _NUMBER.pack(len(head)) + head + (new or b"") + (old or b"")


def _parts(entry: bytes) -> tuple[bytes | None, bytes | None, int, Headers, tuple[str, int, int] | None]:
    size = _NUMBER.unpack_from(entry)[0]
    timestamp, texts, metadata, new_size, old_size = json.loads(entry[4 : 4 + size])
    headers = tuple((name, None if value is None else bytes.fromhex(value)) for name, value in texts)
    place = 4 + size
    new = None if new_size is None else entry[place : place + new_size]
    place += new_size or 0
    old = None if old_size is None else entry[place : place + old_size]
    return new, old, timestamp, headers, None if metadata is None else tuple(metadata)
