"""What operators and processors know of the task that they run in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.common import lineage
from ottla.streams.processing.punctuation import Cancellable, PunctuationType, Schedules
from ottla.streams.record import NO_TIMESTAMP, Headers, RecordMetadata

# topic, key, value, time, headers, partition if it is chosen
Emit = Callable[[str, bytes | None, bytes | None, int, Headers, int | None], None]


class TopicFacts(NamedTuple):
    """Of a topic that is written to."""

    # None where there is no cluster to ask: partitioners are told of one, and may choose any.
    partitions: int | None
    # Of a record batch, as it is on the wire; none where nobody knows.
    bytes_max: int | None = None
    # How many a record (key, value, headers, time) has there, compressed, in a batch by itself.
    bytes_of: Callable[[bytes | None, bytes | None, Headers, int], int] = lambda *record: 0


Topics = Callable[[str], TopicFacts | None]


def nothing_known(topic: str) -> TopicFacts:
    """Where there is no cluster."""
    return TopicFacts(None)


class TaskContext:
    def __init__(
        self,
        application_id: str,
        task_id: str,
        stores: Mapping[str, Any],
        emit: Emit,
        topics: Topics,
        real_name: Callable[[str], str],
        not_written: Callable[[str, str, Exception | str], None],
        *,
        checks_outputs: bool = False,
        has_lineage: bool = False,
    ) -> None:
        self.application_id = application_id
        self.task_id = task_id
        self.stores = stores
        self.emit = emit
        # What is known of topics that are written to; None for one that is not there.
        self.topics = topics
        # A record that cannot be written: (node, topic, why).
        self.not_written = not_written
        # Whether somebody wants to hear of such a record before a broker refuses it.
        self.checks_outputs = checks_outputs
        # Whether what is written says in a header which record it was made of.
        self.has_lineage = has_lineage
        # Of records from the application's own topics, which are deleted once they are read: what those were made of.
        self.origins: dict[tuple[str, int, int], bytes] = {}
        # Of a topic: internal ones have the application's name before theirs.
        self.real_name = real_name
        self.stream_time_ms = NO_TIMESTAMP
        self.wall_clock_ms = 0
        # Topic, partition and offset of the record that is being processed; none while a timer runs.
        self.at: tuple[str, int, int] | None = None
        # Why records were dropped, and how many.
        self.dropped: Counter[str] = Counter()
        self.stream_schedules = Schedules()
        self.wall_schedules = Schedules()

    @property
    def metadata(self) -> RecordMetadata | None:
        """Made for those who ask: few do, and every record would pay for it."""
        return None if self.at is None else RecordMetadata(*self.at)

    @metadata.setter
    def metadata(self, known: RecordMetadata | None) -> None:
        self.at = known

    def with_lineage(self, headers: Headers) -> Headers:
        """The headers of a record that is written now; without one of lineage where a timer writes it."""
        others = tuple(header for header in headers if header[0] != lineage.HEADER)
        if self.at is None:
            return others
        origin = self.origins.get(self.at)
        if origin is None:
            origin = lineage.exact(lineage.Source(*self.at), self.application_id)
        return (*others, (lineage.HEADER, origin))

    def store(self, name: str) -> Any:
        return self.stores[name]

    def drop(self, why: str) -> None:
        self.dropped[why] += 1

    def schedule(self, owner: str, interval_ms: int, kind: PunctuationType, call: Callable[[int], None]) -> Cancellable:
        if kind is PunctuationType.STREAM_TIME:
            return self.stream_schedules.add(owner, interval_ms, 0, call)
        return self.wall_schedules.add(owner, interval_ms, self.wall_clock_ms + interval_ms, call)


DROPPED_NULL = "null key or value"
DROPPED_LATE = "late"
