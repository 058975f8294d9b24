"""Key-value stores, with and without a time beside each value. What is kept is bytes: an object that somebody got from
a store and changes is not changed in the store until it is put."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from ottla.streams import serdes
from ottla.streams.record import NO_TIMESTAMP, ValueAndTimestamp
from ottla.streams.state.bytes_store import BytesStore, prefix_end
from ottla.streams.state.specs import StoreSpec

_TIME = struct.Struct(">q")
_pack_time, _time_of = _TIME.pack, _TIME.unpack_from


class KeyValueStore:
    # What outlives a restart besides the entries.
    remembered: tuple[str, ...] = ()

    def __init__(self, spec: StoreSpec, data: BytesStore, topic: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.data = data
        self.key_bytes = serdes.writer(spec.key_serde, topic)
        self.key_of = serdes.reader(spec.key_serde, topic)
        self._value_bytes = serdes.writer(spec.value_serde, topic)
        self._value_of = serdes.reader(spec.value_serde, topic)

    def _encode(self, value: Any) -> bytes | None:
        return self._value_bytes(value)

    def _decode(self, data: bytes) -> Any:
        return self._value_of(data)

    def get(self, key: Any) -> Any:
        found = self.data.get(self._checked(key))
        return None if found is None else self._decode(found)

    def put(self, key: Any, value: Any) -> None:
        """None deletes."""
        self.data.put(self._checked(key), None if value is None else self._encode(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        before = self.get(key)
        self.put(key, None)
        return before

    def range(self, first: Any = None, last: Any = None, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Both included, in the order of the keys' bytes."""
        low = b"" if first is None else self._checked(first)
        high = None if last is None else self._checked(last)
        for key, value in self.data.range(low, high, reverse=reverse):
            yield self.key_of(key), self._decode(value)

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        return self.range(reverse=True)

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Of keys whose bytes begin so."""
        for key, value in self.data.range(prefix, prefix_end(prefix)):
            if key.startswith(prefix):
                yield self.key_of(key), self._decode(value)

    def approximate_num_entries(self) -> int:
        return len(self.data)

    def _checked(self, key: Any) -> bytes:
        data = self.key_bytes(key)
        if data is None:
            raise ValueError(f"store '{self.name}' was asked for a key that is None")
        return data


class TimestampedKeyValueStore(KeyValueStore):
    """Values are `ValueAndTimestamp`: that of tables and aggregates."""

    def _encode(self, value: Any) -> bytes | None:
        body = self._value_bytes(value.value)
        return None if body is None else _pack_time(value.timestamp) + body

    def _decode(self, data: bytes) -> ValueAndTimestamp:
        return ValueAndTimestamp(self._value_of(data[8:]), _time_of(data)[0])

    # --- for operators, which look a key up and write it back: the key is serialised once

    def at(self, key: bytes) -> tuple[Any, int]:
        """Value and time; None and NO_TIMESTAMP where there is none."""
        found = self.data.get(key)
        if found is None:
            return None, NO_TIMESTAMP
        return self._value_of(found[8:]), _time_of(found)[0]

    def put_at(self, key: bytes, value: Any, timestamp: int) -> None:
        body = self._value_bytes(value)
        self.data.put(key, None if body is None else _pack_time(timestamp) + body)
