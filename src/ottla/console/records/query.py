"""What somebody wants to see of a topic, as it stands in the address of the page: every view can be sent to others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.common.errors import OttlaError
from ottla.common.moments import parse_time

LIMITS = (50, 100, 200, 500)
DOWNLOAD_MAX = 100_000
FORMATS = ("auto", "json", "text", "hex", "registry")
_OFFSET = re.compile(r"\d{1,18}", re.ASCII)
START, END, OFFSET, TIME, NEXT = "start", "end", "offset", "time", "next"


@dataclass(frozen=True)
class Query:
    topic: str
    # From where: `end` shows the newest first and goes backwards, all others go forward.
    origin: str = END
    offset: int = 0
    time_ms: int = 0
    # Where a search goes on that has not come to its end, by partition.
    positions: tuple[tuple[int, int], ...] = ()
    is_backwards: bool = True
    partitions: tuple[int, ...] | None = None
    where: str = ""
    # Plain text that is looked for in keys and values.
    text: str = ""
    limit: int = 50
    format: str = "auto"
    is_committed_only: bool = True


def parse_query(topic: str, given: Mapping[str, str], *, limit_max: int = LIMITS[-1]) -> Query:
    """Raises OttlaError, which says what is wrong."""
    origin = given.get("from", END).strip() or END
    offset = time_ms = 0
    positions: tuple[tuple[int, int], ...] = ()
    is_backwards = origin == END
    if origin == OFFSET or origin.isdigit():
        text = origin if origin.isdigit() else given.get("at", "0").strip() or "0"
        if not _OFFSET.fullmatch(text):
            raise OttlaError(f"an offset is a whole number, not '{text[:40]}'.")
        origin, offset = OFFSET, int(text)
    elif origin == TIME:
        text = given.get("at", "").strip()
        found = parse_time(text.removeprefix("@"))
        if found is None:
            raise OttlaError(f"'{text[:40]}' is not a time: write -15m, 2026-01-31T12:00, or milliseconds since 1970.")
        time_ms = found
    elif origin == NEXT:
        positions, is_backwards = _positions(given.get("positions", "")), given.get("back") == "1"
    elif origin not in (START, END):
        raise OttlaError(f"records are shown from start, end, offset or time, not from '{origin[:40]}'.")
    return Query(
        topic,
        origin,
        offset,
        time_ms,
        positions,
        is_backwards,
        _partitions(given.get("partition", "")),
        given.get("where", "").strip(),
        given.get("text", ""),
        _limit(given.get("limit", ""), limit_max),
        given.get("as", "auto") if given.get("as", "auto") in FORMATS else "auto",
        given.get("isolation", "") != "all",
    )


def positions_text(positions: Mapping[int, int]) -> str:
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def _positions(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split(",")[:10_000]:
        partition, _, offset = part.partition(":")
        if not (_OFFSET.fullmatch(partition) and _OFFSET.fullmatch(offset)):
            raise OttlaError("the place where the search goes on cannot be read: begin it anew.")
        found.append((int(partition), int(offset)))
    return tuple(found)


def _partitions(text: str) -> tuple[int, ...] | None:
    if not text.strip():
        return None
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
        raise OttlaError(f"partitions are numbers with commas between, such as 0,2, not '{text[:40]}'.")
    return tuple(sorted({int(number) for number in numbers}))


def _limit(text: str, most: int) -> int:
    return (
        min(most, max(1, int(text))) if text.isascii() and text.isdigit() and len(text) < 10 else min(most, LIMITS[0])
    )
