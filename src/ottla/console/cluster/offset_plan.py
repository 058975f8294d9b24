"""Where the offsets of a group would be moved: computed for every partition, shown, and only then done. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.moments import parse_time

START, END, OFFSET, TIME, SHIFT = "start", "end", "offset", "time", "shift"
_MOVE = re.compile(
    r"(?P<partition>\d{1,9}):(?P<after>\d{1,18}):(?P<before>\d{0,18}):(?P<topic>.+)", re.ASCII | re.DOTALL
)
_OFFSET = re.compile(r"\d{1,18}", re.ASCII)
_SHIFT = re.compile(r"[+-]\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class Target:
    kind: str
    # An offset, a time in ms, or how far.
    value: int = 0


@dataclass(frozen=True)
class Move:
    where: TopicPartition
    before: int | None
    after: int
    start: int
    end: int

    @property
    def change(self) -> int | None:
        return None if self.before is None else self.after - self.before

    @property
    def lag_after(self) -> int:
        return max(0, self.end - max(self.after, self.start))


def parse_target(kind: str, text: str) -> Target:
    """Raises OttlaError."""
    text = text.strip()
    if kind in (START, END):
        return Target(kind)
    if kind == OFFSET:
        if not _OFFSET.fullmatch(text):
            raise OttlaError(f"an offset is a whole number, not '{text[:40]}'.")
        return Target(OFFSET, int(text))
    if kind == SHIFT:
        if not _SHIFT.fullmatch(text):
            raise OttlaError(f"a step is written +100 or -100, not '{text[:40]}'.")
        return Target(SHIFT, int(text))
    if kind == TIME:
        at_ms = parse_time(text.removeprefix("@"))
        if at_ms is None:
            raise OttlaError(f"'{text[:40]}' is not a time: write -2h, 2026-01-31T12:00, or milliseconds since 1970.")
        return Target(TIME, at_ms)
    raise OttlaError("say where to: start, end, an offset, a time, or a step.")


def plan(
    target: Target,
    committed: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, tuple[int, int]],
    at_time: Mapping[TopicPartition, int],
) -> list[Move]:
    """For each partition of `bounds`; `at_time` has the first offset at or after a time (-1: nothing is that new). What
    stays as it is, is left out. Targets are kept inside what there is."""
    moves = []
    for where, (start, end) in sorted(bounds.items()):
        before = committed.get(where)
        if target.kind == SHIFT:
            if before is None:
                raise OttlaError(
                    f"the group has no offset for {where} that a step could count from: choose another place."
                )
            wanted = before + target.value
        else:
            found = at_time.get(where, -1)
            wanted = {
                START: start,
                END: end,
                OFFSET: target.value,
                TIME: end if found < 0 else found,
            }[target.kind]
        after = min(max(wanted, start), end)
        if after != before:
            moves.append(Move(where, before, after, start, end))
    return moves


def as_text(moves: Iterable[Move]) -> list[str]:
    """As a form carries it: partition and offset, and the offset that it was planned from."""
    return [
        f"{move.where.partition}:{move.after}:{'' if move.before is None else move.before}:{move.where.topic}"
        for move in moves
    ]


def from_text(texts: Iterable[str]) -> dict[TopicPartition, tuple[int, int | None]]:
    """To where, and from where it was planned. Raises OttlaError."""
    found: dict[TopicPartition, tuple[int, int | None]] = {}
    for text in texts:
        match = _MOVE.fullmatch(text)
        if match is None:
            raise OttlaError("the plan cannot be read: make it again.")
        before = int(match["before"]) if match["before"] else None
        found[TopicPartition(match["topic"], int(match["partition"]))] = int(match["after"]), before
    return found
