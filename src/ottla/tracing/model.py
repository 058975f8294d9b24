"""What a trace is: the records of one story in order of time, who has read them, and how far was searched.

Plain values, which `as_json` turns into what JSON has; bytes are text where they are text, and base64 elsewhere.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# How much of a key, value or header is kept: a trace shows which record it is, `ottla consume` shows all of it.
PREVIEW_BYTES_MAX = 2048
HEADERS_MAX = 64

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"
READ, NOT_YET, NOTHING_COMMITTED = "read", "not yet", "nothing committed"
START, LINEAGE = "start", "lineage"


class Position(NamedTuple):
    """A record, by where it is."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} at {self.offset}"


@dataclass(frozen=True)
class Preview:
    """The beginning of some bytes."""

    start: bytes
    size_bytes: int

    @staticmethod
    def of(data: bytes) -> Preview:
        return Preview(data[:PREVIEW_BYTES_MAX], len(data))

    @staticmethod
    def if_any(data: bytes | None) -> Preview | None:
        return None if data is None else Preview.of(data)

    @property
    def text(self) -> str | None:
        """None where it is not text. A character that the end cuts in two is left out."""
        data = self.start
        for cut in range(4 if self.size_bytes > len(data) else 1):
            try:
                text = data[: len(data) - cut].decode()
            except UnicodeDecodeError:
                continue
            return text if all(character.isprintable() or character in "\t\r\n" for character in text) else None
        return None

    def as_json(self) -> dict[str, Any]:
        text = self.text
        shown = {"text": text} if text is not None else {"base64": base64.b64encode(self.start).decode()}
        return {**shown, "bytes": self.size_bytes, "is_cut": self.size_bytes > len(self.start)}


@dataclass(frozen=True)
class GroupRead:
    """A group that has committed offsets in the topic of a hop, and whether it is past it."""

    group: str
    verdict: str
    committed: int | None
    # Until it is past this record: so many, this one among them (at most: offsets are counted); and how old it is.
    lag_records: int = 0
    lag_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "verdict": self.verdict,
            "committed_offset": self.committed,
            "lag_records": self.lag_records,
            "lag_s": round(self.lag_s, 3),
        }


@dataclass(frozen=True)
class Hop:
    """One record of the story."""

    position: Position
    timestamp_ms: int
    # Whether the broker stamped it when it was appended; else its producer said so.
    is_append_time: bool
    key: Preview | None
    value: Preview | None
    headers: tuple[tuple[str, Preview | None], ...]
    status: str
    # How it was found: "start", a criterion such as "key", or "lineage".
    found_by: str
    # The record that it was made of, where lineage says so.
    parent: Position | None = None
    # Which pipeline or application wrote it, and in which batch, where lineage says so.
    writer: str | None = None
    batch: int | None = None
    # Why it is a dead letter, if it is one.
    reason: str | None = None
    # Made of one of these records; which of them is not known.
    made_of: tuple[str, ...] = ()
    # Since its parent, or since the hop before it in time.
    latency_ms: int | None = None
    groups: tuple[GroupRead, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.position.topic,
            "partition": self.position.partition,
            "offset": self.position.offset,
            "timestamp_ms": self.timestamp_ms,
            "timestamp_type": "LogAppendTime" if self.is_append_time else "CreateTime",
            "latency_ms": self.latency_ms,
            "status": self.status,
            "found_by": self.found_by,
            "parent": None if self.parent is None else self.parent._asdict(),
            "writer": self.writer,
            "batch": self.batch,
            "reason": self.reason,
            "made_of": list(self.made_of),
            "key": None if self.key is None else self.key.as_json(),
            "value": None if self.value is None else self.value.as_json(),
            "headers": [
                {"name": name, "value": None if value is None else value.as_json()} for name, value in self.headers
            ],
            "groups": [group.as_json() for group in self.groups],
        }


@dataclass
class Searched:
    """How far one topic was searched, over all its partitions."""

    topic: str
    records: int = 0
    bytes: int = 0
    found: int = 0
    # By partition: the first offset, the one that was reached, and the one to be reached.
    partitions: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    # Why something of it could not be read.
    problem: str | None = None

    @property
    def is_complete(self) -> bool:
        return self.problem is None and all(reached >= end for _, reached, end in self.partitions.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "records": self.records,
            "bytes": self.bytes,
            "found": self.found,
            "is_complete": self.is_complete,
            "problem": self.problem,
            "partitions": [
                {"partition": number, "from": start, "reached": reached, "to": end}
                for number, (start, reached, end) in sorted(self.partitions.items())
            ],
        }


@dataclass(frozen=True)
class Trace:
    start: Position
    # What was looked for: by criterion, the value.
    looked_for: tuple[tuple[str, Preview], ...]
    since_ms: int
    until_ms: int
    hops: tuple[Hop, ...]
    searched: tuple[Searched, ...]
    # Why the search ended before it was complete: "time", "bytes", "hops", "cancelled".
    cut_short: str | None
    took_s: float
    # What else somebody should know of it.
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        return self.cut_short is None and all(topic.is_complete for topic in self.searched)

    @property
    def records(self) -> int:
        return sum(topic.records for topic in self.searched)

    @property
    def bytes(self) -> int:
        return sum(topic.bytes for topic in self.searched)

    def as_json(self) -> dict[str, Any]:
        return {
            "start": self.start._asdict(),
            "looked_for": [{"by": by, "value": value.as_json()} for by, value in self.looked_for],
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "hops": [hop.as_json() for hop in self.hops],
            "searched": {
                "records": self.records,
                "bytes": self.bytes,
                "seconds": round(self.took_s, 3),
                "is_complete": self.is_complete,
                "cut_short": self.cut_short,
                "topics": [topic.as_json() for topic in self.searched],
            },
            "notes": list(self.notes),
        }


def previews(headers: Sequence[tuple[str, bytes | None]]) -> tuple[tuple[str, Preview | None], ...]:
    return tuple((name, Preview.if_any(value)) for name, value in headers[:HEADERS_MAX])
