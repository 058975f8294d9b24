"""What a batch changes, before it is known whether it counts: over the state that is committed, not in it."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.streams.state.bytes_store import Entry, MemoryBytes


class OverlayBytes:
    def __init__(self, base: MemoryBytes) -> None:
        self._base = base
        self._changes: dict[bytes, bytes | None] = {}
        # Those of the changes that are no deletions.
        self._present = MemoryBytes()
        # By prefix: where the last look for the first key in the base ended. What was changed before it stays changed.
        self._firsts: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        if key in self._changes:
            return self._changes[key]
        return self._base.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        changes = self._changes
        if value is not None:
            if changes.get(key) is None:
                self._present.put(key, b"")
            changes[key] = value
            return
        if changes.get(key) is not None:
            self._present.put(key, None)
        if self._base.get(key) is None:
            changes.pop(key, None)  # nobody below knows it: there is nothing to delete
        else:
            changes[key] = None

    def range(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Entry]:
        changes = self._changes
        if not changes:
            return self._base.range(low, high, reverse=reverse)
        found = [entry for entry in self._base.range(low, high) if entry[0] not in changes]
        for key, _ in self._present.range(low, high):
            value = changes[key]
            assert value is not None
            found.append((key, value))
        found.sort(reverse=reverse)
        return iter(found)

    def first(self, prefix: bytes) -> Entry | None:
        below, here = self._first_below(prefix), self._present.first(prefix)
        if here is None or (below is not None and below[0] < here[0]):
            return below
        value = self._changes[here[0]]
        assert value is not None
        return here[0], value

    def _first_below(self, prefix: bytes) -> Entry | None:
        """The first in the base that was not changed here."""
        for entry in self._base.following(self._firsts.get(prefix, prefix)):
            if not entry[0].startswith(prefix):
                return None
            if entry[0] not in self._changes:
                self._firsts[prefix] = entry[0]
                return entry
        return None

    def __len__(self) -> int:
        added = sum(
            1 if value is not None else -1 for key, value in self._changes.items() if self._is_other(key, value)
        )
        return len(self._base) + added

    def _is_other(self, key: bytes, value: bytes | None) -> bool:
        return (self._base.get(key) is None) is (value is not None)

    def changes(self) -> dict[bytes, bytes | None]:
        return self._changes

    def apply(self) -> None:
        """They count."""
        for key, value in self._changes.items():
            self._base.put(key, value)
        self._changes = {}
        self._present = MemoryBytes()
        self._firsts = {}
