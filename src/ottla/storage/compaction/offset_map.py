"""The first pass of a round: of each key in the dirty part of the log, the offset of its last record.

A dict, bounded by log.cleaner.dedupe.buffer.size: when the next batch might not fit, the round ends before it, and the
next round begins there. An entry costs about 150 bytes where Kafka's table of digests needs 24, so the default of
128 MB covers 0.8 million distinct keys a round instead of 5 million; lookups are a dict's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ottla.storage.compaction.walk import MapKey

# A key of up to 40 bytes or a digest (80 bytes), and an offset (32).
_ENTRY_BYTES = 112
# A record without a key has no place in a compacted log: it finds itself superseded by one that never comes.
_NEVER = 1 << 63


class OffsetMap:
    """`latest` is the last offset that the map speaks of; what lies behind it was not looked at."""

    __slots__ = ("_bytes_max", "latest", "offsets")

    def __init__(self, bytes_max: int, first_dirty_offset: int) -> None:
        self._bytes_max = bytes_max
        self.offsets: dict[MapKey, int] = {None: _NEVER}
        self.latest = first_dirty_offset - 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def has_room(self, count: int) -> bool:
        """Whether `count` more keys fit. The first batch of a round always does, or there would be no progress."""
        if len(self.offsets) == 1:
            return True
        return sys.getsizeof(self.offsets) + (len(self.offsets) + count) * _ENTRY_BYTES <= self._bytes_max

    def put(self, keys: Iterable[MapKey], offsets: Iterable[int]) -> None:
        self.offsets.update(zip(keys, offsets, strict=False))
        self.offsets[None] = _NEVER
