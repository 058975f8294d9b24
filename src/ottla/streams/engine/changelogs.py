"""State and records of changelog topics, each made of the other.

The record of a change has the store's key; its value is the plain value, and its time is the value's own where a store
keeps times, as with Kafka Streams. Entries by time are not logged: they are made of those by key.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ottla.streams.state.bytes_store import MemoryBytes
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.state.window_store import index_of, is_index

_LONG = struct.Struct(">q")
_BY_TIME = (StoreKind.WINDOW, StoreKind.SESSION)
_WITH_TIME = (StoreKind.WINDOW, StoreKind.TIMESTAMPED)

# key, value, time in ms
Logged = tuple[bytes, bytes | None, int]


def to_records(spec: StoreSpec, changes: dict[bytes, bytes | None], now_ms: int) -> Iterator[Logged]:
    for key, value in changes.items():
        if spec.kind in _BY_TIME:
            if is_index(key):
                continue
            key = key[1:]
        if value is not None and spec.kind in _WITH_TIME:
            yield key, value[8:], max(0, _LONG.unpack_from(value)[0])
        else:
            yield key, value, now_ms


def apply_record(spec: StoreSpec, data: MemoryBytes, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
    if value is not None and spec.kind in _WITH_TIME:
        value = _LONG.pack(timestamp_ms) + value
    if spec.kind not in _BY_TIME:
        data.put(key, value)
        return
    place = b"k" + key
    data.put(place, value)
    index = b"t" + key[-16:] + key[:-16] if spec.kind is StoreKind.SESSION else index_of(spec, place)
    data.put(index, None if value is None else b"")
