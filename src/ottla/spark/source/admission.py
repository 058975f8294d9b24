"""How far the next micro-batch reads, so that it is no larger than so many bytes.

Nobody tells how many bytes lie between two offsets, so the log is looked at where the batch would begin, where it would
end, and at a few places between. What lies between two of those places is taken for as dense as the denser one, and not
for less than the average of the whole log: a large record here and there is rarely looked at. So a batch ends early
where records become larger, and it can be larger than wanted only by a stretch of large records that begins and ends
between two places. Looking costs a small part of what the batch reads. A query that keeps up does not look at all.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ottla.client.fetching import OffsetRange
from ottla.client.sampling import Position, Sample
from ottla.common.ids import TopicPartition
from ottla.spark.source.positions import Offsets

# So large is a record at most, unless a topic allows more. Few enough records are read without a look.
RECORD_BYTES_MAX = 1024 * 1024
# Places to look at in a partition's part of a batch, its end among them, when the batch is large.
_PLACES = 4
# The part of a batch that may be read once more to find out how large it is.
_LOOK_SHARE = 1 / 16
# Up to this part of what is allowed the end alone is looked at, and nothing at all where all of it has just come.
_SMALL_SHARE = 1 / 16
_NEW_S = 10.0
# Of what is allowed, kept for partitions whose share is less than one record: they would never move.
_RESERVE_SHARE = 1 / 4
_ROUNDS_MAX = 8
# Denser by this factor at one side than at the other: it is worth to find out where that begins.
_STEEP = 4
_GROWTH_MAX = 16
# So much of what is allowed is good enough.
_USED_SHARE = 0.95

# After so many batches the average is asked for again.
_AVERAGE_BATCHES = 32

Look = Callable[[Sequence[Position]], Mapping[Position, Sample]]
Average = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, float]]


class Gauge:
    """What is known about the bytes of one partition."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        # Nothing behind this offset was seen.
        self.reach = -1
        # Bytes for an offset, over the whole log.
        self.average = 0.0

    def add(self, sample: Sample) -> None:
        insort(self._samples, sample)
        self.reach = max(self.reach, sample.end)

    def forget_before(self, offset: int) -> None:
        """All but the last that lies before: what comes next is most likely like it."""
        before = [sample for sample in self._samples if sample.end <= offset]
        self._samples = before[-1:] + [sample for sample in self._samples if sample.end > offset]

    @property
    def bytes_per_offset(self) -> float:
        """The most that was seen."""
        return max((sample.bytes_per_offset for sample in self._samples), default=0.0)

    @property
    def sample_bytes(self) -> float:
        return max((sample.size_bytes for sample in self._samples), default=0)

    def knows(self, offset: int) -> bool:
        return any(sample.start <= offset <= sample.end for sample in self._samples)

    def size_of(self, start: int, end: int, otherwise: float) -> float:
        """Bytes of these offsets, rather too many than too few; `otherwise` is for each where nothing is known."""
        total, at, before = 0.0, start, 0.0
        for sample in self._samples:
            if sample.end > at:
                if sample.start > at:
                    gap = min(end, sample.start) - at
                    total += max(0, gap) * max(before, sample.bytes_per_offset, self.average)
                    at = sample.start
                if at >= end:
                    return total
                is_whole = at == sample.start and sample.end <= end
                total += sample.size_bytes if is_whole else (min(end, sample.end) - at) * sample.bytes_per_offset
                at = sample.end
            before = sample.bytes_per_offset
        return total + max(0, end - at) * (max(before, self.average) or otherwise)

    def steep_gap(self, offset: int) -> tuple[int, int] | None:
        """The stretch around `offset` that was not looked at, if what is on both sides of it differs much."""
        for left, right in zip(self._samples, self._samples[1:], strict=False):
            if left.end <= offset < right.start:
                densities = sorted((left.bytes_per_offset, right.bytes_per_offset))
                return (left.end, right.start) if densities[1] > _STEEP * densities[0] else None
        return None


class Admission:
    """For one query, batch after batch: what was seen at the end of one is known at the beginning of the next."""

    def __init__(
        self, bytes_max: int, look: Look, average: Average, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bytes_max = bytes_max
        self._look = look
        self._average = average
        self._clock = clock
        # Where there was nothing left, and when that was.
        self._caught_up: Offsets = {}
        self._caught_up_at = -math.inf
        self._gauges: dict[TopicPartition, Gauge] = {}
        self._turn = 0

    def ends(self, starts: Mapping[TopicPartition, int], ends: Offsets) -> Offsets:
        """`ends`, or nearer ones: each partition moves by the same part of what it has, at least one of them moves."""
        sizes = {partition: end - starts[partition] for partition, end in ends.items() if end > starts[partition]}
        if not sizes:
            return ends
        gauges = self._known(starts, sizes)
        self._turn += 1
        reached = ends
        if not self._is_small(starts, sizes):
            steps = _Batch(starts, sizes, gauges, self._bytes_max, self._look).steps(self._turn)
            reached = {
                partition: starts[partition] + steps[partition] if partition in steps else end
                for partition, end in ends.items()
            }
        if reached == ends:
            self._caught_up, self._caught_up_at = ends, self._clock()
        return reached

    def _is_small(self, starts: Mapping[TopicPartition, int], sizes: Mapping[TopicPartition, int]) -> bool:
        """Few records, or few bytes by all that is known if they are all from the last seconds."""
        if sum(sizes.values()) * RECORD_BYTES_MAX <= self._bytes_max:
            return True
        if self._clock() > self._caught_up_at + _NEW_S or any(
            self._caught_up.get(partition) != starts[partition] for partition in sizes
        ):
            return False
        ends = {partition: starts[partition] + size for partition, size in sizes.items()}
        known = sum(
            self._gauges[partition].size_of(starts[partition], ends[partition], RECORD_BYTES_MAX) for partition in sizes
        )
        return known <= self._bytes_max * _SMALL_SHARE

    def forget(self, topics: set[str]) -> None:
        """What lies under these names is something else now."""
        self._gauges = {partition: gauge for partition, gauge in self._gauges.items() if partition.topic not in topics}

    def size_of(self, ranges: Iterable[OffsetRange]) -> float:
        """About how many bytes these are, as far as anything is known of them."""
        return sum(
            self._gauges[offset_range.where].size_of(offset_range.start, offset_range.end, 0.0)
            for offset_range in ranges
            if offset_range.size > 0 and offset_range.where in self._gauges
        )

    def _known(
        self, starts: Mapping[TopicPartition, int], wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Gauge]:
        new = [partition for partition in wanted if partition not in self._gauges]
        self._gauges |= {partition: Gauge() for partition in new}
        for partition, average in self._average(wanted if self._turn % _AVERAGE_BATCHES == 0 else new).items():
            self._gauges[partition].average = average
        for partition in wanted:
            self._gauges[partition].forget_before(starts[partition])
        return self._gauges


class _Batch:
    """One decision."""

    def __init__(
        self,
        starts: Mapping[TopicPartition, int],
        sizes: Mapping[TopicPartition, int],
        gauges: Mapping[TopicPartition, Gauge],
        bytes_max: int,
        look: Look,
    ) -> None:
        self._starts = starts
        self._sizes = sizes
        self._gauges = gauges
        self._bytes_max = bytes_max
        self._look = look
        self._look_bytes_left = bytes_max * _LOOK_SHARE
        # By topic, the most bytes that were seen for an offset.
        self._densest: dict[str, float] = {}

    def steps(self, turn: int) -> dict[TopicPartition, int]:
        """By how many offsets each partition moves."""
        self._see(
            [
                (partition, at)
                for partition in self._sizes
                if not self._gauges[partition].knows(at := self._starts[partition])
            ]
        )
        share = self._share()
        for _ in range(_ROUNDS_MAX):
            if not self._can_look or not self._see(self._unseen(share)):
                break
            before, share = share, self._share()
            if share >= before:
                if self._bytes(before) >= self._bytes_max / 2:
                    share = before  # it is enough, and what lies behind it was not looked at
                    break
                share = min(share, _GROWTH_MAX * before)
        return self._whole_offsets(share, turn)

    # --- looking

    def _see(self, positions: Sequence[Position]) -> bool:
        """Whether there was something new to see."""
        affordable = self._affordable(positions)
        found = self._look(affordable) if affordable else {}
        for (partition, _), sample in found.items():
            self._gauges[partition].add(sample)
            self._look_bytes_left -= sample.size_bytes
        for partition in self._sizes:
            self._densest[partition.topic] = max(
                self._densest.get(partition.topic, 0.0), self._gauges[partition].bytes_per_offset
            )
        return bool(found)

    @property
    def _can_look(self) -> bool:
        return self._look_bytes_left > 0 or len(self._sizes) <= _PLACES

    def _affordable(self, positions: Sequence[Position]) -> Sequence[Position]:
        """Of very many only the first: the other partitions are taken to be like those."""
        typical = max(self._gauges[partition].sample_bytes for partition in self._sizes) or RECORD_BYTES_MAX / 16
        least = _PLACES if len(self._sizes) <= _PLACES else 0
        return positions[: max(least, int(self._look_bytes_left / typical))]

    def _unseen(self, share: float) -> list[Position]:
        """Ends first, and first of all those of the partitions that have most to read."""
        places = 1 if self._bytes(share) <= self._bytes_max * _SMALL_SHARE else _PLACES
        ranked: list[tuple[int, int, Position]] = []
        for partition, size in self._sizes.items():
            start, gauge = self._starts[partition], self._gauges[partition]
            end = start + int(share * size)
            seen = max(start, gauge.reach)
            if end > seen:
                for place in range(places):
                    back = (end - seen) * place // places
                    ranked.append((place, -size, (partition, max(seen, end - back - 1))))
            elif (gap := gauge.steep_gap(end)) is not None and gap[1] - gap[0] > (end - start) / _GROWTH_MAX + 1:
                ranked.append((0, -size, (partition, (gap[0] + gap[1]) // 2)))
        return list(dict.fromkeys(position for _, _, position in sorted(ranked)))

    # --- counting

    def _bytes(self, share: float) -> float:
        return sum(
            self._gauges[partition].size_of(
                self._starts[partition], self._starts[partition] + int(share * size), self._dense(partition)
            )
            for partition, size in self._sizes.items()
        )

    def _dense(self, partition: TopicPartition) -> float:
        return self._densest.get(partition.topic, 0.0) or RECORD_BYTES_MAX

    def _one_offset(self, partition: TopicPartition) -> float:
        return self._gauges[partition].size_of(
            self._starts[partition], self._starts[partition] + 1, self._dense(partition)
        )

    def _share(self) -> float:
        """About the largest part of what each partition has that is not more bytes than allowed."""
        allowed = self._bytes_max - self._reserve()
        low, high, low_bytes, high_bytes = 0.0, 1.0, 0.0, self._bytes(1.0)
        if high_bytes <= allowed:
            return high
        least = 1 / max(self._sizes.values())
        is_guess = True
        while high - low > least and low_bytes < _USED_SHARE * allowed:
            # Where a straight line would have it, and in turn in the middle, as sizes are no straight line.
            part = 0.98 * (allowed - low_bytes) / (high_bytes - low_bytes) if is_guess else 0.5
            is_guess = not is_guess
            middle = low + (high - low) * part
            middle_bytes = self._bytes(middle)
            if middle_bytes <= allowed:
                low, low_bytes = middle, middle_bytes
            else:
                high, high_bytes = middle, middle_bytes
        return low

    def _reserve(self) -> float:
        if len(self._sizes) == 1:
            return 0.0
        return min(sum(map(self._one_offset, self._sizes)), self._bytes_max * _RESERVE_SHARE)

    def _whole_offsets(self, share: float, turn: int) -> dict[TopicPartition, int]:
        steps = {partition: int(share * size) for partition, size in self._sizes.items()}
        still = [partition for partition, step in steps.items() if not step]
        must_move = len(still) == len(steps)
        left = self._reserve()
        # In turn, where there is not room for one record of each.
        for partition in still[turn % len(still) :] + still[: turn % len(still)] if still else ():
            cost = self._one_offset(partition)
            if cost <= left or must_move:
                steps[partition], left, must_move = 1, left - cost, False
        return steps
