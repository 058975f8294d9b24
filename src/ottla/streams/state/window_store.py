"""Window stores: values by key and the start of a window, for as long as the store retains them.

    k <key> <start> [<number>]     the value, with its time before it; a number where a store keeps duplicates
    t <start> <key> [<number>]     nothing: where windows are in the order of time, to emit and to forget them

What is older than the retention, measured from the latest start that was put, is not seen any more and is forgotten.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from ottla.streams import serdes
from ottla.streams.record import NO_TIMESTAMP, ValueAndTimestamp
from ottla.streams.state.bytes_store import BytesStore
from ottla.streams.state.specs import StoreSpec
from ottla.streams.windows import FOREVER_MS, Window, Windowed

_LONG = struct.Struct(">q")
_NUMBER = struct.Struct(">I")
_pack, _unpack = _LONG.pack, _LONG.unpack_from


class WindowStore:
    remembered = ("observed_ms", "sequence")

    def __init__(self, spec: StoreSpec, data: BytesStore, topic: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.data = data
        self.observed_ms = NO_TIMESTAMP
        # Tells duplicates apart.
        self.sequence = 0
        self.key_bytes = serdes.writer(spec.key_serde, topic)
        self.key_of = serdes.reader(spec.key_serde, topic)
        self._value_bytes = serdes.writer(spec.value_serde, topic)
        self._value_of = serdes.reader(spec.value_serde, topic)
        self._tail = 12 if spec.keeps_duplicates else 8

    # --- as a processor uses it: values without times

    def put(self, key: Any, value: Any, start: int, timestamp: int | None = None) -> None:
        """None deletes, except where duplicates are kept. `timestamp`: of the value, if not the window's start."""
        self.put_at(self._checked(key), value, start, start if timestamp is None else timestamp)

    def fetch(self, key: Any, first: int, last: int | None = None, *, reverse: bool = False) -> Any:
        """The value of one window, or with `last` pairs of (start, value) of all that start from `first` to `last`."""
        data = self._checked(key)
        if last is None:
            return self.at(data, first)[0]
        return ((start, found.value) for start, found in self.within(data, first, last, reverse=reverse))

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Of all keys, in the order of time."""
        for key, start, found in self.by_time(first, last):
            yield Windowed(self.key_of(key), self.window(start)), found.value

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_all(0, FOREVER_MS)

    def window(self, start: int) -> Window:
        return Window(start, min(FOREVER_MS, start + self.spec.window_size_ms))

    def approximate_num_entries(self) -> int:
        return len(self.data) // 2

    # --- as operators use it: keys as bytes, values with their times

    @property
    def _oldest(self) -> int:
        return max(0, self.observed_ms - self.spec.retention_ms + 1)

    def put_at(self, key: bytes, value: Any, start: int, timestamp: int) -> None:
        if start > self.observed_ms:
            self.observed_ms = start
        elif start < self._oldest:
            return
        tail = _pack(start)
        number = b""
        if self.spec.keeps_duplicates:
            if value is None:
                return
            self.sequence = (self.sequence + 1) & 0x7FFFFFFF
            number = _NUMBER.pack(self.sequence)
        place = b"k" + key + tail + number
        if value is None:
            self.data.put(place, None)
            self.data.put(b"t" + tail + key + number, None)
            return
        if number or self.data.get(place) is None:
            self.data.put(b"t" + tail + key + number, b"")
        body = self._value_bytes(value)
        assert body is not None
        self.data.put(place, _pack(timestamp) + body)

    def at(self, key: bytes, start: int) -> tuple[Any, int]:
        """Value and time of one window."""
        if start < self._oldest:
            return None, NO_TIMESTAMP
        found = self.data.get(b"k" + key + _pack(start))
        return (None, NO_TIMESTAMP) if found is None else (self._value_of(found[8:]), _unpack(found)[0])

    def within(
        self, key: bytes, first: int, last: int, *, reverse: bool = False
    ) -> Iterator[tuple[int, ValueAndTimestamp]]:
        first = max(first, self._oldest)
        if last < first:
            return
        prefix = b"k" + key
        size = len(prefix) + self._tail
        high = prefix + _pack(min(last, FOREVER_MS)) + b"\xff\xff\xff\xff"
        for place, found in self.data.range(prefix + _pack(first), high, reverse=reverse):
            # Longer keys that begin with this one lie between.
            if len(place) == size and place.startswith(prefix):
                yield _unpack(place, len(prefix))[0], ValueAndTimestamp(self._value_of(found[8:]), _unpack(found)[0])

    def by_time(self, first: int, last: int) -> Iterator[tuple[bytes, int, ValueAndTimestamp]]:
        first = max(0, first, self._oldest)
        if last < first:
            return
        for place, _ in self.data.range(b"t" + _pack(first), b"t" + _pack(min(last, FOREVER_MS)) + b"\xff"):
            start = _unpack(place, 1)[0]
            if start > last:
                break
            found = self.data.get(self._primary(place))
            if found is not None:
                key = place[9:-4] if self.spec.keeps_duplicates else place[9:]
                yield key, start, ValueAndTimestamp(self._value_of(found[8:]), _unpack(found)[0])

    def _primary(self, place: bytes) -> bytes:
        if self.spec.keeps_duplicates:
            return b"k" + place[9:-4] + place[1:9] + place[-4:]
        return b"k" + place[9:] + place[1:9]

    def forget_old(self) -> None:
        """Remove what nobody sees any more."""
        self.forget_before(self._oldest)

    def forget_before(self, oldest: int) -> None:
        """Windows that start earlier."""
        if oldest > 0:
            for place, _ in list(self.data.range(b"t", b"t" + _pack(oldest))):
                if _unpack(place, 1)[0] < oldest:
                    self.data.put(place, None)
                    self.data.put(self._primary(place), None)

    def _checked(self, key: Any) -> bytes:
        data = self.key_bytes(key)
        if data is None:
            raise ValueError(f"store '{self.name}' was asked for a key that is None")
        return data


def is_index(place: bytes) -> bool:
    """Whether an entry of a window or session store is made of others, so that a changelog need not have it."""
    return place[:1] == b"t"


def index_of(spec: StoreSpec, place: bytes) -> bytes:
    """The entry by time that belongs to one by key."""
    if spec.keeps_duplicates:
        return b"t" + place[-12:-4] + place[1:-12] + place[-4:]
    return b"t" + place[-8:] + place[1:-8]
