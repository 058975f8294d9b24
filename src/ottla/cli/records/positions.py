"""Places in a log, as people write them, and the offsets they stand for.

    start, end      the first record, after the last one
    42              offset 42
    -5              the last five of each partition
    @1700000000000  the first record at or after a time: epoch ms (or s, up to 11 digits), an ISO date or time
    @2026-01-31T12:00, @-15m, @now
    A:B             from A up to, not including, B; either side may be left out

All partitions are asked in one ListOffsets call per kind of place.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import click

from ottla.cli.connection import ANSWER_S_MAX, Cluster
from ottla.cli.error_sentences import failed
from ottla.common.moments import parse_time

Partition = tuple[str, int]

# What a partition answers for a moment after its leader has changed.
PASSING = frozenset(
    {
        "OFFSET_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    }
)
LOOK_AGAIN_S = 0.1
WORDS = {"start": "start", "beginning": "start", "earliest": "start", "end": "end", "latest": "end"}


class Kind(Enum):
    START = "start"
    END = "end"
    OFFSET = "offset"
    TAIL = "tail"
    TIME = "time"


@dataclass(frozen=True)
class Position:
    kind: Kind
    value: int = 0


@dataclass(frozen=True)
class Span:
    """From `first`; up to, not including, `until` where there is one."""

    first: Position
    until: Position | None = None


START = Position(Kind.START)
END = Position(Kind.END)


# -- reading what was written --------------------------------------------------------------------------------------


def parse_position(text: str, flag: str) -> Position:
    position = _position(text)
    if position is None:
        raise click.UsageError(
            f"{flag} does not understand '{text}': write start, end, an offset such as 42, -5 for the last five, "
            "or @TIME such as @-15m or @2026-01-31T12:00."
        )
    return position


def parse_span(text: str, flag: str = "-o") -> Span:
    """One position, or two around a colon; a colon inside a time is told apart by trying."""
    if (only := _position(text)) is not None:
        return Span(only)
    for colon in (match.start() for match in re.finditer(":", text)):
        first = _position(text[:colon]) if colon else START
        until = _position(text[colon + 1 :]) if text[colon + 1 :] else END
        if first is not None and until is not None and _may_bound(first, until):
            return Span(first, until)
    parse_position(text, flag)
    raise AssertionError


def _may_bound(first: Position, until: Position) -> bool:
    return until.kind is not Kind.TAIL and {first.kind, until.kind} != {Kind.OFFSET, Kind.TIME}


def _position(text: str) -> Position | None:
    if text in WORDS:
        return Position(Kind(WORDS[text]))
    if text.isascii() and text.isdigit():
        return Position(Kind.OFFSET, int(text))
    if re.fullmatch(r"-[1-9]\d*", text, re.ASCII):
        return Position(Kind.TAIL, int(text[1:]))
    if text.startswith("@"):
        at_ms = parse_time(text[1:])
        return None if at_ms is None else Position(Kind.TIME, at_ms)
    return None


# -- asking the cluster --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """The first offset there is, and the one the next record gets."""

    start: int
    end: int


def log_bounds(cluster: Cluster, partitions: Iterable[Partition], isolation: Any = None) -> dict[Partition, Bounds]:
    from confluent_kafka.admin import OffsetSpec

    wanted = list(partitions)
    starts = list_offsets(cluster, dict.fromkeys(wanted, OffsetSpec.earliest()), isolation)
    ends = list_offsets(cluster, dict.fromkeys(wanted, OffsetSpec.latest()), isolation)
    return {partition: Bounds(starts[partition], ends[partition]) for partition in wanted}


def known_bounds(cluster: Cluster, partitions: Iterable[Partition], patience_s: float) -> dict[Partition, Bounds]:
    """Without the partitions that do not tell now."""
    from confluent_kafka.admin import OffsetSpec

    wanted = list(partitions)
    starts, _ = known_offsets(cluster, dict.fromkeys(wanted, OffsetSpec.earliest()), None, patience_s)
    ends, _ = known_offsets(cluster, dict.fromkeys(starts, OffsetSpec.latest()), None, patience_s)
    return {partition: Bounds(starts[partition], end) for partition, end in ends.items()}


def offsets_at_time(cluster: Cluster, bounds: Mapping[Partition, Bounds], at_ms: int) -> dict[Partition, int]:
    """The first record at or after the time; the log's end where there is none."""
    from confluent_kafka.admin import OffsetSpec

    found = list_offsets(cluster, dict.fromkeys(bounds, OffsetSpec.for_timestamp(at_ms)))
    return {partition: bounds[partition].end if offset < 0 else offset for partition, offset in found.items()}


def list_offsets(
    cluster: Cluster, wanted: Mapping[Partition, Any], isolation: Any = None, patience_s: float = ANSWER_S_MAX
) -> dict[Partition, int]:
    """Partitions whose leader has just changed are asked for again."""
    found, unknown = known_offsets(cluster, wanted, isolation, patience_s)
    for (topic, index), error in unknown.items():
        raise failed(error, f"offsets of {topic}-{index}")
    return found


def known_offsets(
    cluster: Cluster, wanted: Mapping[Partition, Any], isolation: Any, patience_s: float
) -> tuple[dict[Partition, int], dict[Partition, Exception]]:
    """And why the others are not known: with too few replicas in sync a new leader cannot tell its end for long."""
    from confluent_kafka import KafkaException

    more = {} if isolation is None else {"isolation_level": isolation}
    found: dict[Partition, int] = {}
    left, deadline = dict(wanted), time.monotonic() + patience_s
    while left:
        unknown: dict[Partition, Exception] = {}
        for (topic, index), answer in _ask_for_offsets(cluster, left, more).items():
            try:
                found[topic, index] = cluster.wait(answer).offset
            except KafkaException as error:
                if error.args[0].name() not in PASSING:
                    raise failed(error, f"offsets of {topic}-{index}") from None
                unknown[topic, index] = error
        left = {partition: spec for partition, spec in left.items() if partition in unknown}
        if left and time.monotonic() > deadline:
            return found, unknown
        if left:
            time.sleep(LOOK_AGAIN_S)
    return found, {}


def _ask_for_offsets(
    cluster: Cluster, wanted: Mapping[Partition, Any], more: Mapping[str, Any]
) -> dict[Partition, Any]:
    from confluent_kafka import TopicPartition

    asked = {TopicPartition(topic, index): spec for (topic, index), spec in wanted.items()}
    answers = cluster.admin.list_offsets(asked, request_timeout=ANSWER_S_MAX, **more)
    return {(partition.topic, partition.partition): answer for partition, answer in answers.items()}


def resolve(cluster: Cluster, bounds: Mapping[Partition, Bounds], position: Position) -> dict[Partition, int]:
    """Offsets inside each partition's bounds; an OFFSET outside of them is moved to the nearer end."""
    if position.kind is Kind.TIME:
        return offsets_at_time(cluster, bounds, position.value)
    return {partition: _resolve_one(bound, position) for partition, bound in bounds.items()}


def _resolve_one(bound: Bounds, position: Position) -> int:
    if position.kind is Kind.START:
        return bound.start
    if position.kind is Kind.END:
        return bound.end
    wanted = position.value if position.kind is Kind.OFFSET else bound.end - position.value
    return min(max(wanted, bound.start), bound.end)
