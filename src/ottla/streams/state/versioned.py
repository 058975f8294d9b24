"""Versioned key-value stores (KIP-889): the values of a key over time, for as long as the store remembers them.

    <length of the key> <key> <time>     whether there is a value, and the value: a deletion is a version as well

What is older than the history, measured from the latest time that was put, is gone, except for the version that was
valid where history begins.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.streams import serdes
from ottla.streams.record import NO_TIMESTAMP, ValueAndTimestamp
from ottla.streams.state.bytes_store import BytesStore
from ottla.streams.state.specs import StoreSpec

_LONG, _SIZE = struct.Struct(">q"), struct.Struct(">I")
_GONE, _THERE = b"\x00", b"\x01"


class VersionedKeyValueStore:
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

    # --- as a processor uses it

    def put(self, key: Any, value: Any, timestamp: int) -> bool:
        """From this time on, until the next version; None deletes. False if that is older than the history."""
        return self.put_at(self._checked(key), value, timestamp) is not None

    def delete(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        """From this time on. What was valid then; None, too, if that is older than the history."""
        before = self.get(key, timestamp)
        return before if self.put(key, None, timestamp) else None

    def get(self, key: Any, as_of: int | None = None) -> ValueAndTimestamp | None:
        """The latest version, or the one that was valid at a time."""
        value, time_ms = self.at(self._checked(key), as_of)
        return None if value is None else ValueAndTimestamp(value, time_ms)

    def approximate_num_entries(self) -> int:
        return len(self.data)

    # --- as operators use it

    def put_at(self, key: bytes, value: Any, timestamp: int) -> bool | None:
        """Whether it is the latest version of its key; None if it is too old to be kept."""
        if timestamp < self._begin:
            return None
        self.observed_ms = max(self.observed_ms, timestamp)
        prefix, body = _prefix(key), self._value_bytes(value)
        self.data.put(prefix + _LONG.pack(timestamp), _GONE if body is None else _THERE + body)
        times = [time_ms for time_ms, _ in self._versions(prefix)]
        self._forget(prefix, times)
        return timestamp == times[0]

    def at(self, key: bytes, as_of: int | None = None) -> tuple[Any, int]:
        for place, (time_ms, entry) in enumerate(self._versions(_prefix(key))):
            if as_of is None or time_ms <= as_of:
                # The latest version counts however old it is; of those before it, only what history has.
                is_seen = place == 0 or as_of is None or as_of >= self._begin
                return (self._value_of(entry[1:]), time_ms) if entry[:1] == _THERE and is_seen else _NOTHING
        return _NOTHING

    @property
    def _begin(self) -> int:
        return self.observed_ms - self.spec.retention_ms

    def _versions(self, prefix: bytes) -> list[tuple[int, bytes]]:
        """The latest first."""
        found = self.data.range(prefix, prefix + b"\xff" * 9, reverse=True)
        size = len(prefix) + 8
        return [(_LONG.unpack_from(place, len(prefix))[0], entry) for place, entry in found if len(place) == size]

    def _forget(self, prefix: bytes, times: list[int]) -> None:
        """What was valid before history begins, but for the one that still is when it does."""
        for place, time_ms in enumerate(times):
            if place > 0 and times[place - 1] <= self._begin:
                self.data.put(prefix + _LONG.pack(time_ms), None)

    def _checked(self, key: Any) -> bytes:
        data = self.key_bytes(key)
        if data is None:
            raise ValueError(f"store '{self.name}' was asked for a key that is None")
        return data


_NOTHING = (None, NO_TIMESTAMP)


def _prefix(key: bytes) -> bytes:
    return _SIZE.pack(len(key)) + key
