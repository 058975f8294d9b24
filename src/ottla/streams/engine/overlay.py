"""What a batch changes, before it is known whether it counts: over the state that is committed, not in it."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.streams.state.bytes_store import Entry, MemoryBytes


class OverlayBytes:
    def __init__(self, base: MemoryBytes) -> None:
        self._base = base
        self._changes: dict[bytes, bytes | None] = {}
        self._keys = MemoryBytes()

    def get(self, key: bytes) -> bytes | None:
        if key in self._changes:
            return self._changes[key]
        return self._base.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        if key not in self._changes:
            if value is None and self._base.get(key) is None:
                return
            self._keys.put(key, b"")
        self._changes[key] = value

    def range(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Entry]:
        changes = self._changes
        if not changes:
            return self._base.range(low, high, reverse=reverse)
        found = [entry for entry in self._base.range(low, high) if entry[0] not in changes]
        for key, _ in self._keys.range(low, high):
            value = changes[key]
            if value is not None:
                found.append((key, value))
        found.sort(reverse=reverse)
        return iter(found)

    def first(self, prefix: bytes) -> Entry | None:
        return next((entry for entry in self.range(prefix, prefix + b"\xff" * 32) if entry[0].startswith(prefix)), None)

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
        self._keys = MemoryBytes()
