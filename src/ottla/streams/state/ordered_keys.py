"""Keys in order, of which any can be added or removed in a moment, however many there are: chunks of a thousand or so.

One sorted list would move all that lies behind a new key: with a million keys, a millisecond for each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

_CHUNK = 1_000


class OrderedKeys:
    def __init__(self, keys: Iterable[bytes]) -> None:
        ordered = sorted(keys)
        self._chunks = [ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK)]
        # The last key of each chunk.
        self._lasts = [chunk[-1] for chunk in self._chunks]

    def add(self, key: bytes) -> None:
        """One that is not there yet."""
        place = bisect_left(self._lasts, key)
        if place == len(self._lasts):
            if not self._chunks:
                self._chunks, self._lasts = [[key]], [key]
                return
            place -= 1
            self._chunks[place].append(key)
            self._lasts[place] = key
        else:
            insort(self._chunks[place], key)
        chunk = self._chunks[place]
        if len(chunk) > 2 * _CHUNK:
            self._chunks[place : place + 1] = [chunk[:_CHUNK], chunk[_CHUNK:]]
            self._lasts[place : place + 1] = [chunk[_CHUNK - 1], chunk[-1]]

    def remove(self, key: bytes) -> None:
        """One that is there."""
        place = bisect_left(self._lasts, key)
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, key)]
        if not chunk:
            del self._chunks[place], self._lasts[place]
        else:
            self._lasts[place] = chunk[-1]

    def following(self, key: bytes) -> Iterator[bytes]:
        """From this key on."""
        first = bisect_left(self._lasts, key)
        for place in range(first, len(self._chunks)):
            chunk = self._chunks[place]
            yield from chunk[bisect_left(chunk, key) :] if place == first else chunk

    def between(self, low: bytes, high: bytes | None) -> list[bytes]:
        """Both included; None is the end."""
        found: list[bytes] = []
        first = bisect_left(self._lasts, low)
        for place in range(first, len(self._chunks)):
            chunk = self._chunks[place]
            start = bisect_left(chunk, low) if place == first else 0
            if high is not None and chunk[-1] > high:
                found += chunk[start : bisect_right(chunk, high)]
                break
            found += chunk[start:]
        return found
