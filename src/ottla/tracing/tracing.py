"""`trace`: from one record to all records of its story.

The record is read; what it has in common with others is its trace id or its key, unless somebody says what else. All
topics are searched for that within a window of time around the record. Where our own sinks have written lineage headers
the way is exact: upwards the records that a header names are read, downwards those whose header names one of ours are
found by the same pass, and by another one for each step further down, over the topics that have such headers at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.tracing.criteria import Criterion, parse_criterion
from ottla.tracing.limits import Budget, Limits, Stopped
from ottla.tracing.model import LINEAGE, START, Hop, Position, Preview, Searched, Trace
from ottla.tracing.readers import with_groups
from ottla.tracing.search import (
    Found,
    Plan,
    Raw,
    Readers,
    Search,
    View,
    as_it_is,
    chosen_topics,
    plan_search,
    read_exactly,
)

WINDOW_MS = 3_600_000
# What is asked for is the first record after it, in 64 bits.
_TIME_MS_MAX = 2**63 - 2
# Steps up and down of lineage; more pipelines than that in a row are a loop.
_STEPS_MAX = 16


class NothingToFollow(OttlaError):
    """The record has none of what stories are followed by unless somebody says by what."""


def trace(
    cluster: ClientSettings | ClusterAddress | str,
    start: Position | tuple[str, int, int],
    *,
    by: Sequence[str] = (),
    topics: Sequence[str] = (),
    since_ms: int | None = None,
    until_ms: int | None = None,
    window_ms: int = WINDOW_MS,
    limits: Limits | None = None,
    with_readers: bool = True,
    is_cancelled: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Budget], None] = lambda budget: None,
    view: View = as_it_is,
) -> Trace:
    """Where the record at `start` came from and where it went.

    `by`: "key", "traceparent", "header:NAME", "json:PATH"; with several of them a record that has the value under any
    is meant. Without, the trace id is taken if the record has one, and else its key. What lineage headers say is
    followed in any case; "lineage" alone follows nothing else. `topics`: names or patterns (`orders-*`); all but
    internal ones if none is given. The time searched is `window_ms` before and after the record, unless `since_ms` or
    `until_ms` say otherwise. `is_cancelled` is asked, and `on_progress` told, after every piece; both from this thread.
    `view` is what of a record may be looked at: what it hides is not shown, and finds nothing. Raises OttlaError.
    """
    settings = _settings(cluster)
    first = Position(*start)
    budget = Budget(limits or Limits(), is_cancelled, on_progress)
    criteria = [parse_criterion(text) for text in by if text != LINEAGE]
    with Readers(settings) as readers:
        begun, raw = _start(readers, first, view)
        wanted = [] if by and not criteria else _wanted(begun, raw, view(first, raw), criteria)
        since, until = _window(begun.timestamp_ms, window_ms)
        since, until = since if since_ms is None else since_ms, until if until_ms is None else until_ms
        if since > until:
            raise OttlaError("the time to be searched ends before it begins: --since must not be after --until.")
        search = Search(readers, budget, view)
        story = _Story(readers, search, begun, view)
        cut_short = None
        try:
            problems: dict[str, str] = {}
            plan = plan_search(readers, chosen_topics(readers.all, topics, first.topic), since, until, problems)
            search.searched |= {topic: Searched(topic, problem=why) for topic, why in problems.items()}
            story.follow(plan, wanted)
        except Stopped as stopped:
            cut_short = stopped.why
        hops, notes = story.hops(), list(search.losses)
    if with_readers:
        try:
            with ClusterClient(settings.address, client_id=settings.client_id) as client:
                hops = with_groups(client, hops, time.time_ns() // 1_000_000)
        except OttlaError as error:
            notes.append(f"who has read them is not known: {error}")
    return Trace(
        first,
        tuple((criterion.text, Preview.of(value)) for criterion, value in wanted),
        since,
        until,
        hops,
        tuple(search.searched[topic] for topic in sorted(search.searched)),
        cut_short,
        budget.took_s,
        tuple(notes),
    )


def _settings(cluster: ClientSettings | ClusterAddress | str) -> ClientSettings:
    if isinstance(cluster, ClientSettings):
        return cluster
    address = ClusterAddress(cluster) if isinstance(cluster, str) else cluster
    return ClientSettings(address.servers, client_id="ottla-trace", security=address.security)


def _window(at_ms: int, window_ms: int) -> tuple[int, int]:
    """Around a record. One that has no time may belong to any."""
    if at_ms < 0:
        return 0, time.time_ns() // 1_000_000
    return max(0, at_ms - window_ms), min(at_ms + window_ms, _TIME_MS_MAX)


def _start(readers: Readers, first: Position, view: View) -> tuple[Found, Raw]:
    readers.all.any_broker()  # that nobody is there is told at once
    if first.partition not in readers.all.partitions([first.topic]).get(first.topic, []):
        raise OttlaError(
            f"there is no partition {first.topic}-{first.partition}: `ottla topic list` shows what there is."
        )
    found = read_exactly(readers, first, START, view)
    if found is None:
        raise OttlaError(
            f"{first.topic}-{first.partition} has no record at offset {first.offset}: it was deleted or compacted "
            "away, marks a transaction, or is not written yet; "
            f"`ottla consume {first.topic} -p {first.partition}` shows what there is."
        )
    return found


def _wanted(begun: Found, raw: Raw, viewed: Raw, criteria: Sequence[Criterion]) -> list[tuple[Criterion, bytes]]:
    """The value that the first of the criteria finds in the record, under all of them; not one that is hidden."""
    own = criteria or [parse_criterion("traceparent"), parse_criterion("key")]
    present = [(criterion, value) for criterion in own if (value := criterion.value_of(*raw)) is not None]
    has = [(criterion, value) for criterion, value in present if criterion.value_of(*viewed) == value]
    if criteria and has:
        return [(criterion, has[0][1]) for criterion in criteria]
    if has:
        return has[:1]
    if begun.lineage is not None:
        return []
    if present:
        told = " and ".join(criterion.text for criterion, _ in present)
        raise OttlaError(
            f"of the record {begun.position} {told} is hidden from you, so nothing can be found by it: "
            "choose something else that its story shares."
        )
    if not criteria:
        raise NothingToFollow(
            f"the record {begun.position} has neither a key nor a traceparent to follow: choose what its story shares, "
            "header:NAME or json:PATH, or lineage if only what was made of it is meant."
        )
    told = " or ".join(criterion.text for criterion in criteria)
    raise OttlaError(f"the record {begun.position} has no {told}: look at it, and choose something that it has.")


class _Story:
    def __init__(self, readers: Readers, search: Search, begun: Found, view: View) -> None:
        self._readers = readers
        self._view = view
        self._search = search
        self._begun = begun
        self._found: dict[Position, Found] = {begun.position: begun}

    def follow(self, plan: Plan, wanted: Sequence[tuple[Criterion, bytes]]) -> None:
        """Raises Stopped; what was found until then is in `hops`."""
        self._climb([self._begun])
        told = self._positions()
        self._take(self._search.run(plan, wanted, told))
        self._climb(list(self._found.values()))
        for _ in range(_STEPS_MAX):
            new = self._positions() - told
            below = plan.only(self._search.with_lineage)
            if not new or not (below.decided or below.undecided):
                return
            told |= new
            self._take(self._search.run(below, [], new))

    def _positions(self) -> set[Position]:
        return set(self._found)

    def _take(self, found: Iterable[Found]) -> None:
        for record in found:
            known = self._found.get(record.position)
            if known is None or (known.found_by != START and record.found_by == LINEAGE):
                self._found[record.position] = record

    def _climb(self, records: Sequence[Found]) -> None:
        """Up to what these were made of, as far as it is still there."""
        level = list(records)
        for _ in range(_STEPS_MAX):
            sources = [
                Position(*lineage.source)
                for record in level
                if (lineage := record.lineage) is not None and lineage.source is not None
            ]
            missing = [source for source in dict.fromkeys(sources) if source not in self._found]
            if not missing:
                return
            level = []
            for source in missing:
                self._search.budget.check()
                try:
                    found = read_exactly(self._readers, source, LINEAGE, self._view)
                except OttlaError as error:
                    self._search.losses.append(str(error))
                    continue
                level += [] if found is None else [found[0]]
            self._take(level)

    def hops(self) -> tuple[Hop, ...]:
        """In order of time; where it is the same, what was made of another comes after it."""
        known = {position: _hop(found) for position, found in self._found.items()}
        hops: list[Hop] = []
        for hop in sorted(known.values(), key=lambda hop: (hop.timestamp_ms, _depth(hop, known), hop.position)):
            since = known[hop.parent] if hop.parent in known else hops[-1] if hops else None
            latency_ms = None if since is None else hop.timestamp_ms - since.timestamp_ms
            hops.append(replace(hop, latency_ms=latency_ms))
        return tuple(hops)


def _depth(hop: Hop, known: dict[Position, Hop]) -> int:
    depth = 0
    while hop.parent in known and depth < _STEPS_MAX:
        hop, depth = known[hop.parent], depth + 1
    return depth


def _hop(found: Found) -> Hop:
    lineage = found.lineage
    return Hop(
        found.position,
        found.timestamp_ms,
        found.is_append_time,
        found.key,
        found.value,
        found.headers,
        found.status,
        found.found_by,
        parent=None if lineage is None or lineage.source is None else Position(*lineage.source),
        writer=None if lineage is None else lineage.query,
        batch=None if lineage is None else lineage.batch,
        reason=None if found.reason is None else found.reason.text,
        made_of=() if lineage is None else tuple(str(part) for part in lineage.ranges),
    )
