"""Which ranges one task reads: about one split per core, of even sizes.

A task costs some 20 ms even when it reads nothing, so partitions are packed together rather than read by a task each.
Whole partitions are packed if that comes out even; else ranges are cut, as one large partition would be read by one
core while the others wait. Small batches, of few records and few bytes, are not spread at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ottla.client.fetching import OffsetRange

# Fewer records than this are read in less time than another task takes to start.
SPLIT_RECORDS_MIN = 4_000
SPLIT_BYTES_MIN = 4 * 1024 * 1024
# The largest split may be so much above the average before ranges are cut.
UNEVEN_MAX = 1.2

Split = list[OffsetRange]


def make_splits(
    ranges: Sequence[OffsetRange],
    cores: int,
    *,
    at_least: int | None = None,
    records_max: int | None = None,
    size_bytes: float = 0.0,
) -> list[Split]:
    """Every range, or its parts, in exactly one split. `size_bytes`: about how large they are, if that is known."""
    wanted = [offset_range for offset_range in ranges if offset_range.size > 0]
    total = sum(offset_range.size for offset_range in wanted)
    if not total:
        return []
    count = min(cores, max(-(-total // SPLIT_RECORDS_MIN), int(size_bytes / SPLIT_BYTES_MIN)))
    if at_least is not None:
        count = max(count, at_least)
    if records_max is not None:
        count = max(count, -(-total // records_max))
    count = min(count, total)
    packed = _pack(wanted, count)
    largest = max(sum(offset_range.size for offset_range in split) for split in packed)
    is_even = len(packed) == count and largest <= UNEVEN_MAX * total / count
    if is_even and (records_max is None or largest <= records_max):
        return packed
    return _cut(wanted, total, count)


def whole_splits(ranges: Sequence[OffsetRange], cores: int) -> list[Split]:
    """Ranges of the same partition number together, whatever their topics, in as many splits as there are cores."""
    by_number: dict[int, Split] = {}
    for offset_range in ranges:
        if offset_range.size > 0:
            by_number.setdefault(offset_range.partition, []).append(offset_range)
    splits: list[Split] = [[] for _ in range(cores)]
    for split in sorted(by_number.values(), key=lambda each: -sum(one.size for one in each)):
        min(splits, key=lambda each: sum(one.size for one in each)).extend(split)
    return [split for split in splits if split]


def _pack(ranges: Sequence[OffsetRange], count: int) -> list[Split]:
    """Largest first, each into the split that has least."""
    splits: list[Split] = [[] for _ in range(count)]
    loads = [(0, index) for index in range(count)]
    for offset_range in sorted(ranges, key=lambda each: -each.size):
        load, index = heapq.heappop(loads)
        splits[index].append(offset_range)
        heapq.heappush(loads, (load + offset_range.size, index))
    return [split for split in splits if split]


def _cut(ranges: Sequence[OffsetRange], total: int, count: int) -> list[Split]:
    """Fill one split after the other to the same size, cutting a range where a split is full."""
    splits: list[Split] = []
    current: Split = []
    taken = 0
    for offset_range in ranges:
        start = offset_range.start
        while start < offset_range.end:
            # Where split number len(splits) ends, counted over all: sizes differ by one record at most.
            room = total * (len(splits) + 1) // count - taken
            step = min(room, offset_range.end - start)
            current.append(offset_range._replace(start=start, end=start + step))
            start += step
            taken += step
            if step == room:
                splits.append(current)
                current = []
    return splits
