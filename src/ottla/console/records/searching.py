"""Records that a condition holds for, newest first or in their order, with how far was searched.

Partitions are read in windows that grow. What a window brings is decoded into Arrow columns by the kernel; bytes that a
condition takes at least are looked for in whole columns, and only the rows that have them become records. So most of a
topic is searched without a Python object for each record.

A window that is left before its end counts as far as it was searched. Backwards that is nothing of a partition that was
not read up to its end, so a window that takes too long is given up for a smaller one; the smallest is read whatever it
takes, so every search comes further.

Within a partition the order is that of offsets, always. Between partitions the next one is whichever head is newer (or
older): a record that was not shown, as the limit was reached, lies beyond the place at which the search would go on.

A search ends when it has enough, when nothing is left, when it took too long, or when nobody waits any more.
It says which.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import pyarrow as pa

from ottla.client.fetching import OffsetRange, fetch_ranges
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.where import Condition, Need, Record, compile_condition, linear
from ottla.console.records.columns import candidates
from ottla.console.records.query import END, NEXT, OFFSET, START, Query
from ottla.kernel.decode import Decoder, fetched_until

_FIRST_WINDOW = 2_000
_WINDOW_MAX = 200_000
_WINDOW_STEP = 4
_SMALLER_BY = 16
# A window that goes backwards may take this share of the whole time: then there is some left for a smaller one.
_SHARE_OF_WINDOW = 0.25
_KEPT_BYTES_MAX = 64 * 1024 * 1024
_LOOK_EVERY_ROWS = 512
# To decode one by a schema may take milliseconds.
_LOOK_EVERY_VIEWS = 16
_ROWS_MAX = 10_000

ENOUGH, EVERYTHING, TIME_OVER, CANCELLED = "enough", "everything", "time", "cancelled"


@dataclass
class Progress:
    """How far it is. `positions` are where it goes on, by partition."""

    records: int = 0
    bytes: int = 0
    # Offsets: of which so many are searched.
    total: int = 0
    searched: int = 0
    matches: int = 0
    seconds: float = 0.0
    positions: dict[int, int] = field(default_factory=dict)
    ended: str | None = None
    notices: list[str] = field(default_factory=list)


class _Stopped(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _TooLarge(Exception):
    """Nothing of a window is searched yet, and it takes too long."""


# A record before it is filtered and shown: decoded by the registry, masked.
View = Callable[[Record], Record]


def condition_of(query: Query) -> Condition | None:
    """Raises OttlaError."""
    parts = [compile_condition(query.where, linear)] if query.where else []
    if query.text:
        wanted = query.text.encode()

        def has_text(record: Record) -> bool:
            return wanted in (record.value or b"") or wanted in (record.key or b"")

        parts.append(Condition(has_text, ()))
    if not parts:
        return None
    return Condition(
        lambda record: all(part.holds(record) for part in parts), tuple(need for part in parts for need in part.needs)
    )


class Search:
    """One search. `rounds` gives records as they are found; `progress` is always what was done so far."""

    def __init__(
        self,
        reader: ClusterReader,
        query: Query,
        view: View | None,
        *,
        seconds_max: float,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._reader = reader
        self._query = query
        self._view = view
        self._condition = condition_of(query)
        # What a column has tells nothing of a record that is decoded or masked first.
        self._needs: tuple[Need, ...] = () if view is not None or self._condition is None else self._condition.needs
        self._text = query.text.encode() if query.text and view is None else None
        # To build them for every row costs as much as all the rest.
        self._needs_headers = view is not None or "headers" in query.where
        self._rows: list[int] | None = None
        self._seconds_max = seconds_max
        self._is_cancelled = is_cancelled
        self._began_s = time.monotonic()
        self._kept_bytes = 0
        # Of a window: where, by partition, older matches were dropped as there was no room for them.
        self._lost: dict[int, int] = {}
        # Of a window: up to where, by partition, its records were looked at; and until when it may go on.
        self._reached: dict[int, int] = {}
        self._window_until_s: float | None = None
        # A search ends when its time is over, but not before it has come further.
        self._has_come_further = False
        # Why, and not the exception: its frames hold what was fetched.
        self._stopped_by: str | None = None
        self.progress = Progress()

    def rounds(self) -> Iterator[list[Record]]:
        """Raises OttlaError."""
        query, progress = self._query, self.progress
        bounds = self.bounds()
        left = dict(progress.positions)
        # So many offsets of each partition.
        each = query.limit if self._condition is None else max(1, _FIRST_WINDOW // max(1, len(bounds)))
        each_max = max(each, _WINDOW_MAX // max(1, len(bounds)))
        try:
            while progress.matches < query.limit and any(self._rest(bounds, left).values()):
                try:
                    yield self._round(bounds, left, each)
                except _TooLarge:
                    each, each_max = max(1, each // _SMALLER_BY), max(1, each // _WINDOW_STEP)
                    continue
                if self._stopped_by is not None:
                    raise _Stopped(self._stopped_by)
                each = min(each_max, each * _WINDOW_STEP)
            progress.ended = ENOUGH if any(self._rest(bounds, left).values()) else EVERYTHING
        except _Stopped as stop:
            progress.ended = stop.why
        progress.seconds = time.monotonic() - self._began_s

    # --- where

    def bounds(self) -> dict[int, tuple[int, int]]:
        """What there is to search, by partition; `positions` are set to where it begins."""
        query = self._query
        present = self._reader.partitions([query.topic]).get(query.topic)
        if present is None:
            raise OttlaError(f"there is no topic '{query.topic}' any more.")
        chosen = [number for number in present if query.partitions is None or number in query.partitions]
        if query.partitions is not None and (absent := set(query.partitions) - set(present)):
            raise OttlaError(f"topic '{query.topic}' has no partition {min(absent)}: it has 0 to {max(present)}.")
        places = [TopicPartition(query.topic, number) for number in chosen]
        starts = self._reader.offsets(dict.fromkeys(places, EARLIEST))
        ends = self._reader.offsets(dict.fromkeys(places, LATEST))
        bounds = {place.partition: (starts[place], max(starts[place], ends[place])) for place in places}
        self.progress.positions = self._origins(bounds)
        bounds = {number: bound for number, bound in bounds.items() if number in self.progress.positions}
        self.progress.total = sum(self._rest(bounds, self.progress.positions).values())
        return bounds

    def _origins(self, bounds: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        query = self._query
        if query.origin == START:
            return {number: start for number, (start, _) in bounds.items()}
        if query.origin == END:
            return {number: end for number, (_, end) in bounds.items()}
        if query.origin == OFFSET:
            return {number: min(max(query.offset, start), end) for number, (start, end) in bounds.items()}
        if query.origin == NEXT:
            return {
                number: min(max(offset, bounds[number][0]), bounds[number][1])
                for number, offset in query.positions
                if number in bounds
            }
        wanted = {TopicPartition(query.topic, number): query.time_ms for number in bounds}
        found = self._reader.offsets(wanted)
        return {
            place.partition: bounds[place.partition][1] if offset < 0 else offset for place, offset in found.items()
        }

    def _rest(self, bounds: Mapping[int, tuple[int, int]], left: Mapping[int, int]) -> dict[int, int]:
        """Offsets that are not searched yet."""
        return {
            number: left[number] - start if self._query.is_backwards else end - left[number]
            for number, (start, end) in bounds.items()
        }

    # --- a window

    def _round(self, bounds: Mapping[int, tuple[int, int]], left: dict[int, int], each: int) -> list[Record]:
        """Raises _TooLarge; a stop is kept until what was found before it is shown."""
        query, progress = self._query, self.progress
        wanted = query.limit - progress.matches
        ranges = {}
        for number, (start, end) in bounds.items():
            at = left[number]
            low, high = (max(start, at - each), at) if query.is_backwards else (at, min(end, at + each))
            if high > low:
                ranges[number] = OffsetRange(query.topic, number, low, high)
        found: dict[int, deque[Record]] = {number: deque() for number in ranges}
        full: dict[int, int] = {}
        try:
            self._read_window(ranges, found, wanted, full)
        except _Stopped as stop:
            self._stopped_by = stop.why
        if query.is_backwards:
            # Of a partition that was not read to its end the newest records are missing: it is read again.
            ranges = {number: one for number, one in ranges.items() if self._reached[number] >= one.end}
            found = {number: rows for number, rows in found.items() if number in ranges}
        shown = self._merged(found, wanted)
        for number, one in ranges.items():
            hidden = found[number]
            if query.is_backwards:
                # What was found and not shown lies before what was shown.
                left[number] = hidden[-1].offset + 1 if hidden else self._lost.get(number, one.start)
            else:
                left[number] = hidden[0].offset if hidden else full.get(number, self._reached[number])
        progress.positions = dict(left)
        progress.searched = progress.total - sum(self._rest(bounds, left).values())
        progress.matches += len(shown)
        progress.seconds = time.monotonic() - self._began_s
        return shown

    def _read_window(
        self,
        ranges: Mapping[int, OffsetRange],
        found: Mapping[int, deque[Record]],
        wanted: int,
        full: dict[int, int],
    ) -> None:
        """Raises _Stopped and _TooLarge."""
        self._kept_bytes, self._lost = 0, {}
        self._reached = {number: one.start for number, one in ranges.items()}
        can_shrink = self._query.is_backwards and any(one.size > 1 for one in ranges.values())
        self._window_until_s = time.monotonic() + _SHARE_OF_WINDOW * self._seconds_max if can_shrink else None
        with closing(fetch_ranges(self._reader, list(ranges.values()), self.progress.notices.append)) as pieces:
            for fetched in pieces:
                self._check()
                number = fetched.range.partition
                self.progress.bytes += len(fetched.records)
                if number not in full:
                    self._search_piece(fetched, number, found[number], wanted, full)
                    self._come_to(number, fetched_until(fetched.records, fetched.start), fetched.range)
        # What is left of a range is not there any more.
        self._reached = {number: one.end for number, one in ranges.items()}
        self._has_come_further = True

    def _come_to(self, number: int, offset: int, one: OffsetRange) -> None:
        if offset > self._reached[number]:
            self._reached[number] = min(offset, one.end)
            self._has_come_further |= not self._query.is_backwards or offset >= one.end
            if self._has_come_further:
                self._window_until_s = None

    def _search_piece(self, fetched: Any, number: int, found: deque[Record], wanted: int, full: dict[int, int]) -> None:
        decoder = Decoder(
            fetched.records,
            fetched.start,
            fetched.range.end,
            fetched.aborted,
            with_headers=True,
            check_crcs=self._reader.settings.check_crcs,
        )
        look_every = _LOOK_EVERY_ROWS if self._view is None else _LOOK_EVERY_VIEWS
        while (columns := decoder.next_columns(_ROWS_MAX)) is not None:
            self._check()
            self.progress.records += len(columns[0])
            for at, record in enumerate(self._records(columns, number)):
                if at % look_every == 0:
                    self._come_to(number, record.offset, fetched.range)
                    self._check()
                if self._condition is not None and not self._condition.holds(record):
                    continue
                if not self._needs_headers:
                    record.headers = _headers(columns[5][at if self._rows is None else self._rows[at]].as_py())
                self._keep(record, found, wanted)
                if not self._query.is_backwards and (len(found) >= wanted or self._kept_bytes > _KEPT_BYTES_MAX):
                    full[number] = record.offset + 1
                    return
            self._come_to(number, columns[2][len(columns[2]) - 1].as_py() + 1, fetched.range)

    def _keep(self, record: Record, found: deque[Record], wanted: int) -> None:
        found.append(record)
        self._kept_bytes += _weight(record)
        if not self._query.is_backwards:
            return
        while len(found) > wanted or (self._kept_bytes > _KEPT_BYTES_MAX and len(found) > 1):
            dropped = found.popleft()
            self._kept_bytes -= _weight(dropped)
            self._lost[dropped.partition] = dropped.offset + 1

    def _candidates(self, columns: Sequence[Any]) -> list[int] | None:
        """Rows that have the bytes which the condition takes at least; None: all."""
        if self._condition is None or not (self._needs or self._text):
            return None
        return candidates((columns[0], columns[1]), self._needs, self._text)

    def _records(self, columns: Sequence[Any], number: int) -> Iterator[Record]:
        """Of the rows that may be wanted; with their headers, if those are looked at."""
        self._rows = self._candidates(columns)
        if self._rows is not None:
            columns = [column.take(pa.array(self._rows, pa.int64())) for column in columns]
        stamps = columns[3].cast(pa.int64()).to_pylist()
        headers = columns[5].to_pylist() if self._needs_headers else repeat(None)
        rows = zip(
            columns[2].to_pylist(), stamps, columns[0].to_pylist(), columns[1].to_pylist(), headers, strict=False
        )
        topic, view = self._query.topic, self._view
        for offset, stamp, key, value, held in rows:
            record = Record(topic, number, offset, stamp // 1000, key, value, _headers(held))
            yield record if view is None else view(record)

    def _merged(self, found: Mapping[int, deque[Record]], wanted: int) -> list[Record]:
        """Takes what is shown out of `found`."""
        shown: list[Record] = []
        while len(shown) < wanted:
            heads = [rows for rows in found.values() if rows]
            if not heads:
                break
            if self._query.is_backwards:
                shown.append(max(heads, key=lambda rows: rows[-1].timestamp).pop())
            else:
                shown.append(min(heads, key=lambda rows: rows[0].timestamp).popleft())
        return shown

    def _check(self) -> None:
        if self._is_cancelled():
            raise _Stopped(CANCELLED)
        now_s = time.monotonic()
        if self._has_come_further and now_s - self._began_s > self._seconds_max:
            raise _Stopped(TIME_OVER)
        if self._window_until_s is not None and now_s > self._window_until_s:
            raise _TooLarge


def _headers(held: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    return [(one["key"], one["value"]) for one in held or ()]


def _weight(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + 200
