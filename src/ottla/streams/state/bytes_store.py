"""Where stores keep their bytes: ordered keys with values, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ottla.streams.state.ordered_keys import OrderedKeys

Entry = tuple[bytes, bytes]


class BytesStore(Protocol):
    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes | None) -> None:
        """None deletes."""

    def range(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Entry]:
        """From `low` to `high`, both included; None is the end. What is written meanwhile is not seen."""

    def first(self, prefix: bytes) -> Entry | None:
        """The first whose key begins so."""

    def __len__(self) -> int: ...


class MemoryBytes:
    """A dict. Its keys are kept in order from the moment that somebody asks for a range."""

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}
        self._ordered: OrderedKeys | None = None
        self.get = self._entries.get

    def put(self, key: bytes, value: bytes | None) -> None:
        entries, ordered = self._entries, self._ordered
        if value is None:
            if entries.pop(key, None) is not None and ordered is not None:
                ordered.remove(key)
            return
        if ordered is not None and key not in entries:
            ordered.add(key)
        entries[key] = value

    def first(self, prefix: bytes) -> Entry | None:
        entry = next(self.following(prefix), None)
        return entry if entry is not None and entry[0].startswith(prefix) else None

    def following(self, key: bytes) -> Iterator[Entry]:
        """From this key on, one by one: for those who stop after a few and write nothing meanwhile."""
        entries = self._entries
        return ((each, entries[each]) for each in self._in_order().following(key))

    def _in_order(self) -> OrderedKeys:
        if self._ordered is None:
            self._ordered = OrderedKeys(self._entries)
        return self._ordered

    def range(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Entry]:
        keys = self._in_order().between(low, high)
        if reverse:
            keys.reverse()
        entries = self._entries
        return iter([(key, entries[key]) for key in keys])

    def __len__(self) -> int:
        return len(self._entries)


def prefix_end(prefix: bytes) -> bytes | None:
    """The last that a key with this prefix can be, as far as ranges go; None for all that follows."""
    for place in range(len(prefix) - 1, -1, -1):
        if prefix[place] != 0xFF:
            return prefix[:place] + bytes([prefix[place] + 1])
    return None
