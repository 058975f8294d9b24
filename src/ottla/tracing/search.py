"""The search for records that have something in common with one: which offsets, the pass over them, and its limits.

Ends and moments are asked of the cluster by ListOffsets, so only what lies in the window is fetched. What is fetched is
decoded to columns and tested by column; of a record that is not meant nothing is kept. So memory is two answers of a
fetch, one piece of columns and the hops, and the limits on time, bytes and hops hold whatever the topics have.

Aborted records are found too, and told as such: each piece is decoded with them, and once more without them where
something was found. What lies behind the last stable offset belongs to transactions that are open, or waits for them.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.fetching import Fetched, OffsetRange, UnreadableRecords, fetch_ranges
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.lineage import DEAD_LETTER_OFFSET, HEADER, REASON, Lineage, Source, lineage_in
from ottla.kernel.decode import Decoder, fetched_until
from ottla.kernel.errors import CorruptRecords
from ottla.tracing.criteria import Criterion, flat_headers
from ottla.tracing.limits import Budget
from ottla.tracing.model import ABORTED, COMMITTED, LINEAGE, OPEN, Position, Preview, Searched, previews

_PATIENCE_MS = 10_000


class Raw(NamedTuple):
    """All bytes of a record."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


# What of a record may be looked at: what it hides neither finds a record nor is shown.
View = Callable[[Position, Raw], Raw]


def as_it_is(position: Position, raw: Raw) -> Raw:
    return raw


class Found(NamedTuple):
    """What is kept of a record, which may be large."""

    position: Position
    timestamp_ms: int
    is_append_time: bool
    key: Preview | None
    value: Preview | None
    headers: tuple[tuple[str, Preview | None], ...]
    lineage: Lineage | None
    # Of a dead letter.
    reason: Preview | None
    status: str
    found_by: str


class Readers:
    """The same cluster twice: what is decided, and all there is."""

    def __init__(self, settings: ClientSettings) -> None:
        # Somebody is waiting: a partition without a leader is left out soon, and told of.
        quick = replace(settings, api_timeout_ms=min(settings.api_timeout_ms, _PATIENCE_MS))
        self.committed = ClusterReader(replace(quick, is_committed_only=True))
        self.all = ClusterReader(replace(quick, is_committed_only=False))

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.committed.close()
        self.all.close()


class Plan(NamedTuple):
    """Offsets that are decided, and those behind the last stable offset."""

    decided: list[OffsetRange]
    undecided: list[OffsetRange]

    def only(self, topics: Iterable[str]) -> Plan:
        wanted = set(topics)
        return Plan(*([part for part in parts if part.topic in wanted] for parts in self))


def chosen_topics(reader: ClusterReader, patterns: Sequence[str], start: str) -> list[str]:
    """Those that match a pattern (`orders-*`) or are named; all but internal ones without patterns."""
    names = reader.topic_names()
    if not patterns:
        return sorted({*names, start})
    chosen = {start}
    for pattern in patterns:
        found = fnmatch.filter(names, pattern)
        if not found:
            raise OttlaError(f"no topic matches '{pattern}': `ottla topic list` shows what there is.")
        chosen.update(found)
    return sorted(chosen)


def plan_search(
    readers: Readers, topics: Sequence[str], since_ms: int, until_ms: int, problems: dict[str, str]
) -> Plan:
    """The offsets of these topics in this time, up to what is there now; why not, of those that do not tell them."""
    try:
        return _plan(readers, topics, since_ms, until_ms)
    except OttlaError as error:
        if len(topics) == 1:
            problems[topics[0]] = str(error)
            return Plan([], [])
    parts = [plan_search(readers, [topic], since_ms, until_ms, problems) for topic in topics]
    return Plan([one for part in parts for one in part.decided], [one for part in parts for one in part.undecided])


def _plan(readers: Readers, topics: Sequence[str], since_ms: int, until_ms: int) -> Plan:
    numbers = readers.all.partitions(topics)
    places = [TopicPartition(topic, number) for topic, its in numbers.items() for number in its]
    first = readers.all.offsets(dict.fromkeys(places, max(0, since_ms)))
    after = readers.all.offsets(dict.fromkeys(places, max(0, until_ms + 1)))
    high = readers.all.offsets(dict.fromkeys(places, LATEST))
    stable = readers.committed.offsets(dict.fromkeys(places, LATEST))
    decided, undecided = [], []
    for place in places:
        start = first[place] if first[place] >= 0 else high[place]
        end = min(after[place] if after[place] >= 0 else high[place], high[place])
        border = min(max(start, stable[place]), end)
        if start < border:
            decided.append(OffsetRange(*place, start, border))
        if border < end:
            undecided.append(OffsetRange(*place, border, end))
    return Plan(decided, undecided)


class _MadeOf:
    """Whether a record was made of one of these. That it was made of a batch in which one of them was does not count:
    among thousands that says nothing of this one."""

    def __init__(self, positions: Iterable[Position]) -> None:
        self._positions = frozenset(positions)
        named = [str(Source(*position)).encode() for position in self._positions]
        offsets = {str(position.offset).encode() for position in self._positions}
        self._first_words = pa.array([*named, *offsets], pa.binary())

    def may_name(self, contents: pa.Array) -> pa.Array:
        """Of the contents of headers of both kinds, by their first words."""
        words = pc.split_pattern(pc.fill_null(contents, b" "), b" ", max_splits=1)
        return pc.is_in(pc.list_element(words, 0), value_set=self._first_words)

    def is_named_by(self, headers: tuple[tuple[str, bytes | None], ...]) -> bool:
        lineage = lineage_in(headers)
        return lineage is not None and lineage.source is not None and Position(*lineage.source) in self._positions


class _Test(NamedTuple):
    wanted: Sequence[tuple[Criterion, bytes]]
    made_of: _MadeOf


class Search:
    """One or several passes over topics; says how far it came, also when it was stopped."""

    def __init__(self, readers: Readers, budget: Budget, view: View = as_it_is) -> None:
        self._readers = readers
        self._view = view
        self.budget = budget
        self.searched: dict[str, Searched] = {}
        # Topics in which some record has a lineage header: only these are worth another pass.
        self.with_lineage: set[str] = set()
        # Sentences about records that were gone when they were to be read.
        self.losses: list[str] = []

    def run(
        self, plan: Plan, wanted: Sequence[tuple[Criterion, bytes]], made_of: Iterable[Position]
    ) -> Iterator[Found]:
        """Records that have what is wanted, or were made of one of `made_of`. Raises Stopped."""
        for part in (*plan.decided, *plan.undecided):
            topic = self.searched.setdefault(part.topic, Searched(part.topic))
            start, reached, end = topic.partitions.get(part.partition, (part.start, part.start, part.end))
            topic.partitions[part.partition] = (min(start, part.start), reached, max(end, part.end))
        test = _Test(wanted, _MadeOf(made_of))
        yield from self._pass(self._readers.committed, plan.decided, test)
        yield from self._pass(self._readers.all, plan.undecided, test)

    def _pass(self, reader: ClusterReader, ranges: Sequence[OffsetRange], test: _Test) -> Iterator[Found]:
        """All topics together; one that this user may not read, or that is broken, does not end the others."""
        left = {part.where: part for part in ranges}
        try:
            yield from self._ranges(reader, list(left.values()), left, test)
            return
        except OttlaError:
            topics = sorted({place.topic for place in left})
        for topic in topics:
            own = [part for part in left.values() if part.topic == topic]
            try:
                yield from self._ranges(reader, own, left, test)
            except OttlaError as error:
                self.searched[topic].problem = str(error)

    def _ranges(
        self, reader: ClusterReader, ranges: Sequence[OffsetRange], left: dict[TopicPartition, OffsetRange], test: _Test
    ) -> Iterator[Found]:
        """What is done is taken off `left`."""
        self.budget.check()
        for fetched in fetched_answers(reader, ranges, self.losses.append):
            part = fetched.range
            topic = self.searched[part.topic]
            size = len(fetched.records)
            topic.bytes += size
            self.budget.bytes += size
            reached = fetched.start
            decoder = Decoder(fetched.records, fetched.start, part.end, [], True)
            try:
                while (columns := decoder.next_columns()) is not None:
                    reached = columns[2][len(columns[2]) - 1].as_py() + 1
                    topic.records += len(columns[0])
                    self.budget.records += len(columns[0])
                    by_row = self._matched(part, columns, test)
                    if by_row:
                        is_decided = reader is self._readers.committed
                        kept = _kept(fetched, reached) if is_decided and fetched.aborted else None
                        for row in sorted(by_row):
                            topic.found += 1
                            self.budget.took_hop()
                            status = _status(columns, row, kept, is_decided)
                            yield _found(part, columns, row, by_row[row], status, self._viewed(part, columns, row))
                    self._reached(topic, part, reached)
                    self.budget.check()
            except CorruptRecords as error:
                topic.problem = f"{part.where}: {error}."
            after = max(reached, fetched_until(fetched.records, fetched.start))
            left[part.where] = part._replace(start=min(after, part.end))
            self._reached(topic, part, after)
            self.budget.check()
        for part in ranges:
            self._reached(self.searched[part.topic], part, part.end)
            del left[part.where]

    @staticmethod
    def _reached(topic: Searched, part: OffsetRange, offset: int) -> None:
        start, reached, end = topic.partitions[part.partition]
        topic.partitions[part.partition] = (start, max(reached, min(offset, part.end)), end)

    def _matched(self, part: OffsetRange, columns: list[Any], test: _Test) -> dict[int, str]:
        """By row, how it was found. Columns have the bytes as they are: what they find is tested again on what may be
        looked at."""
        by_row: dict[int, str] = {}
        for criterion, value in test.wanted:
            for row in criterion.matches(columns, value).to_pylist():
                if self._view is as_it_is or criterion.value_of(*self._viewed(part, columns, row)) == value:
                    by_row.setdefault(row, criterion.text)
        headers = columns[5]
        if headers.null_count < len(headers):
            parents, names, contents = flat_headers(headers)
            is_ours = pc.or_(pc.equal(names, HEADER), pc.equal(names, DEAD_LETTER_OFFSET))
            if pc.any(is_ours).as_py():
                self.with_lineage.add(part.topic)
                candidates = parents.filter(is_ours).filter(test.made_of.may_name(contents.filter(is_ours)))
                for row in set(candidates.to_pylist()):
                    if test.made_of.is_named_by(self._viewed(part, columns, row).headers):
                        by_row[row] = LINEAGE
        return by_row

    def _viewed(self, part: OffsetRange, columns: list[Any], row: int) -> Raw:
        return self._view(Position(part.topic, part.partition, columns[2][row].as_py()), _raw(columns, row))


def _kept(fetched: Fetched, until: int) -> set[int]:
    """The offsets of an answer that no aborted transaction has, up to one."""
    decoder = Decoder(fetched.records, fetched.start, until, fetched.aborted, False)
    kept: set[int] = set()
    while (columns := decoder.next_columns()) is not None:
        kept.update(columns[2].to_pylist())
    return kept


def _status(columns: list[Any], row: int, kept: set[int] | None, is_decided: bool) -> str:
    if not is_decided:
        return OPEN
    return COMMITTED if kept is None or columns[2][row].as_py() in kept else ABORTED


def _found(part: OffsetRange, columns: list[Any], row: int, found_by: str, status: str, raw: Raw) -> Found:
    reason = next((value for name, value in reversed(raw.headers) if name == REASON), None)
    return Found(
        Position(part.topic, part.partition, columns[2][row].as_py()),
        columns[3][row].cast(pa.int64()).as_py() // 1000,
        columns[4][row].as_py() == 1,
        Preview.if_any(raw.key),
        Preview.if_any(raw.value),
        previews(raw.headers),
        lineage_in(raw.headers),
        Preview.if_any(reason),
        status,
        found_by,
    )


def _raw(columns: list[Any], row: int) -> Raw:
    return Raw(columns[0][row].as_py(), columns[1][row].as_py(), _headers(columns, row))


def _headers(columns: list[Any], row: int) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header["key"], header["value"]) for header in columns[5][row].as_py() or ())


def fetched_answers(
    reader: ClusterReader, ranges: Sequence[OffsetRange], on_loss: Callable[[str], None]
) -> Iterator[Fetched]:
    """As `fetch_ranges`; that batches are of a format before Kafka 0.11, or none at all, is an OttlaError as well."""
    try:
        yield from fetch_ranges(reader, ranges, on_loss)
    except CorruptRecords as error:
        topics = ", ".join(sorted({part.topic for part in ranges}))
        raise UnreadableRecords(f"a batch of {topics} cannot be read: {error}.") from None


def read_exactly(
    readers: Readers, position: Position, found_by: str, view: View = as_it_is
) -> tuple[Found, Raw] | None:
    """This record, if it is there: what may be shown of it, and all of it."""
    place = TopicPartition(position.topic, position.partition)
    if position.partition not in readers.all.partitions([position.topic]).get(position.topic, []):
        return None
    end, stable = (reader.offsets({place: LATEST})[place] for reader in (readers.all, readers.committed))
    if not readers.all.offsets({place: EARLIEST})[place] <= position.offset < end:
        return None
    is_decided = position.offset < stable
    wanted = OffsetRange(*place, position.offset, position.offset + 1)
    lost: list[str] = []
    for fetched in fetched_answers(readers.committed if is_decided else readers.all, [wanted], lost.append):
        try:
            columns = Decoder(fetched.records, position.offset, position.offset + 1, [], True).next_columns()
        except CorruptRecords as error:
            raise UnreadableRecords(f"the record {position} cannot be read: {error}.") from None
        if columns is not None:
            kept = _kept(fetched, position.offset + 1) if is_decided and fetched.aborted else None
            raw = _raw(columns, 0)
            status = _status(columns, 0, kept, is_decided)
            return _found(wanted, columns, 0, found_by, status, view(position, raw)), raw
    return None
