"""Session stores: aggregates by key and session.

k <key> <end> <start>     the aggregate
t <end> <start> <key>     nothing: sessions in the order of their ends, to emit and to forget them
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from ottla.streams import serdes
from ottla.streams.record import NO_TIMESTAMP
from ottla.streams.state.bytes_store import BytesStore
from ottla.streams.state.specs import StoreSpec
from ottla.streams.windows import FOREVER_MS, Window, Windowed

_LONG = struct.Struct(">q")
_pack, _unpack = _LONG.pack, _LONG.unpack_from


class SessionStore:
    remembered = ("observed_ms",)

    def __init__(self, spec: StoreSpec, data: BytesStore, topic: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.data = data
        self.observed_ms = NO_TIMESTAMP
        self.key_bytes = serdes.writer(spec.key_serde, topic)
        self.key_of = serdes.reader(spec.key_serde, topic)
        self._value_bytes = serdes.writer(spec.value_serde, topic)
        self._value_of = serdes.reader(spec.value_serde, topic)

    def put(self, session: Windowed, aggregate: Any) -> None:
        """None deletes."""
        self.put_at(self._checked(session.key), session.window, aggregate)

    def remove(self, session: Windowed) -> None:
        self.put(session, None)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a key."""
        return self.find_sessions(key, 0, FOREVER_MS)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        found = self.data.get(b"k" + self._checked(key) + _pack(end) + _pack(start))
        return None if found is None or end < self._oldest else self._value_of(found)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        for window, aggregate in self.within(self._checked(key), earliest_end, latest_start):
            yield Windowed(key, window), aggregate

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        for key, window, aggregate in self.by_end(0, FOREVER_MS):
            yield Windowed(self.key_of(key), window), aggregate

    def approximate_num_entries(self) -> int:
        return len(self.data) // 2

    # --- as operators use it

    @property
    def _oldest(self) -> int:
        return max(0, self.observed_ms - self.spec.retention_ms + 1)

    def put_at(self, key: bytes, window: Window, aggregate: Any) -> None:
        start, end = window
        if end > self.observed_ms:
            self.observed_ms = end
        elif end < self._oldest:
            return
        place, body = b"k" + key + _pack(end) + _pack(start), self._value_bytes(aggregate)
        self.data.put(place, body)
        self.data.put(b"t" + _pack(end) + _pack(start) + key, None if body is None else b"")

    def within(self, key: bytes, earliest_end: int, latest_start: int) -> list[tuple[Window, Any]]:
        """In the order of their ends."""
        prefix = b"k" + key
        size = len(prefix) + 16
        low = prefix + _pack(max(0, earliest_end, self._oldest))
        found = []
        for place, value in self.data.range(low, prefix + b"\x7f" + b"\xff" * 16):
            if len(place) == size and place.startswith(prefix):
                end, start = _unpack(place, size - 16)[0], _unpack(place, size - 8)[0]
                if start <= latest_start:
                    found.append((Window(start, end), self._value_of(value)))
        return found

    def by_end(self, first: int, last: int) -> Iterator[tuple[bytes, Window, Any]]:
        first = max(0, first, self._oldest)
        if last < first:
            return
        for place, _ in self.data.range(b"t" + _pack(first), b"t" + _pack(min(last, FOREVER_MS)) + b"\xff" * 9):
            end, start = _unpack(place, 1)[0], _unpack(place, 9)[0]
            if end > last:
                break
            value = self.data.get(b"k" + place[17:] + place[1:17])
            if value is not None:
                yield place[17:], Window(start, end), self._value_of(value)

    def forget_old(self) -> None:
        self.forget_before(self._oldest)

    def forget_before(self, oldest: int) -> None:
        """Sessions that end earlier."""
        if oldest > 0:
            for place, _ in list(self.data.range(b"t", b"t" + _pack(oldest))):
                if _unpack(place, 1)[0] < oldest:
                    self.data.put(place, None)
                    self.data.put(b"k" + place[17:] + place[1:17], None)

    def _checked(self, key: Any) -> bytes:
        data = self.key_bytes(key)
        if data is None:
            raise ValueError(f"store '{self.name}' was asked for a key that is None")
        return data
