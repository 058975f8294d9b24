"""How `ottla top` looks: figures and what was pressed to lines of text. PURE: no terminal is touched here."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ottla.cli.output import printable, table
from ottla.cli.top.figures import BrokerLine, Figures, GroupLine, TopicLine

VIEWS = ("brokers", "topics", "groups")
HELP = "tab view  ↑↓ scroll  s sort  r reverse  q quit"
# The orders of each view, the first is the usual one; by name it goes up, by a number down.
ORDERS: dict[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "brokers": (
        ("broker", lambda line: line.broker),
        ("rate", lambda line: -line.records_per_s),
        ("leads", lambda line: -line.leads),
        ("behind", lambda line: -line.behind),
    ),
    "topics": (
        ("rate", lambda line: -line.records_per_s),
        ("name", lambda line: line.topic),
        ("lag", lambda line: -(line.lag or 0)),
        ("partitions", lambda line: -line.partitions),
    ),
    "groups": (
        ("lag", lambda line: -line.lag),
        ("name", lambda line: line.group),
        ("behind", lambda line: -(line.seconds_behind or 0.0)),
        ("status", lambda line: (-{"OK": 0, "WARN": 1, "ERROR": 2}[line.status], line.group)),
    ),
}
# What `table` paints for a terminal; here lines are cut and painted as a whole.
_CODES = re.compile(r"\x1b\[[0-9;]*m")
_RED, _YELLOW, _BOLD, _REVERSE, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[7m", "\x1b[0m"


@dataclass(frozen=True)
class Shown:
    """What the person at the terminal has chosen."""

    view: str = "topics"
    order: int = 0
    is_reversed: bool = False
    scrolled: int = 0
    is_over: bool = False

    def pressed(self, key: str, *, page: int) -> Shown:
        """`page` is how many lines there is room for."""
        if key in ("q", "Q", "\x03", "\x1b"):
            return replace(self, is_over=True)
        if key in ("\t", "right", "left"):
            step = -1 if key == "left" else 1
            view = VIEWS[(VIEWS.index(self.view) + step) % len(VIEWS)]
            return Shown(view)
        if key == "s":
            return replace(self, order=(self.order + 1) % len(ORDERS[self.view]), scrolled=0)
        if key == "r":
            return replace(self, is_reversed=not self.is_reversed, scrolled=0)
        moves = {"up": -1, "down": 1, "page up": -page, "page down": page}
        if key in moves:
            return replace(self, scrolled=max(0, self.scrolled + moves[key]))
        return self


def screen(figures: Figures, shown: Shown, width: int, height: int) -> list[str]:
    """Exactly `height` lines, none wider than `width` (beside colours)."""
    lines = [_headline(figures), _health(figures), ""]
    order, _ = ORDERS[shown.view][shown.order]
    tabs = "  ".join(f"[{view}]" if view == shown.view else f" {view} " for view in VIEWS)
    lines.append(f"{tabs}   by {order}{', reversed' if shown.is_reversed else ''}")
    headings, *rows = _table(figures, shown)
    room = max(1, height - len(lines) - 2)
    start = min(shown.scrolled, max(0, len(rows) - room))
    lines += [headings, *rows[start : start + room]]
    lines += [""] * (height - 1 - len(lines))
    cut = [cut_to(width, line) for line in lines[: height - 1]]
    cut.append(HELP[:width])
    return [_painted(line, place, len(cut)) for place, line in enumerate(cut)]


def cut_to(width: int, line: str) -> str:
    """As many characters as there are columns for: some take two, some none."""
    if line.isascii():
        return line[:width]
    taken = 0
    for at, character in enumerate(line):
        taken += 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken > width:
            return line[:at]
    return line


def _painted(line: str, place: int, count: int) -> str:
    if place == 0:
        return f"{_BOLD}{line}{_PLAIN}"
    if place == 4 or place == count - 1:
        return f"{_REVERSE}{line}{_PLAIN}"
    if " ERROR " in line or " gone " in line or line.startswith("!"):
        return f"{_RED}{line}{_PLAIN}"
    return f"{_YELLOW}{line}{_PLAIN}" if " WARN " in line else line


def plain_lines(figures: Figures) -> Iterable[str]:
    """All views below one another, for `--once`."""
    yield _headline(figures)
    yield _health(figures)
    for view in VIEWS:
        yield ""
        yield from _table(figures, Shown(view))


def _headline(figures: Figures) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(figures.at_ms / 1_000))
    return (
        f"{at}  {len(figures.brokers)} brokers  {len(figures.topics)} topics  {figures.partitions} partitions  "
        f"{len(figures.groups)} groups  {short(figures.records_per_s)} records/s"
    )


def _health(figures: Figures) -> str:
    ill = []
    if figures.offline:
        ill.append(f"{figures.offline} partitions without a leader")
    if figures.under_replicated:
        ill.append(f"{figures.under_replicated} under-replicated ({figures.advice})")
    if wrong := sum(group.status == "ERROR" for group in figures.groups):
        ill.append(f"{wrong} groups in error")
    ill += figures.troubles
    return printable("! " + "; ".join(ill)) if ill else "all partitions are in sync, no group is in error"


def _table(figures: Figures, shown: Shown) -> list[str]:
    _, key = ORDERS[shown.view][shown.order]
    lines: list[Any] = sorted(getattr(figures, shown.view), key=key, reverse=shown.is_reversed)
    headings, row = _ROWS[shown.view]
    return [_CODES.sub("", line) for line in table(headings, [row(line) for line in lines])]


def _broker_row(line: BrokerLine) -> list[Any]:
    role = "controller" if line.is_controller else ""
    return [line.broker, line.address, role, line.leads, line.replicas, line.behind, short(line.records_per_s)]


def _topic_row(line: TopicLine) -> list[Any]:
    replicas = [line.under_replicated, line.offline]
    return [line.topic, short(line.records_per_s), line.partitions, line.groups, line.lag, *replicas]


def _group_row(line: GroupLine) -> list[Any]:
    behind = None if line.seconds_behind is None else f"{line.seconds_behind:.1f} s"
    return [line.group, line.status, line.lag, behind, short(line.read_per_s), line.members, line.state, line.why]


_ROWS: dict[str, tuple[list[str], Callable[[Any], list[Any]]]] = {
    "brokers": (["BROKER", "ADDRESS", "ROLE", "LEADS", "REPLICAS", "BEHIND", "RECORDS/S"], _broker_row),
    "topics": (["TOPIC", "RECORDS/S", "PARTITIONS", "GROUPS", "LAG", "UNDER-REPLICATED", "OFFLINE"], _topic_row),
    "groups": (["GROUP", "STATUS", "LAG", "BEHIND", "READ/S", "MEMBERS", "STATE", "WHY"], _group_row),
}


def short(rate: float) -> str:
    """12,345 -> 12.3k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{unit}"
    return f"{rate:.1f}" if rate < 10 else f"{rate:.0f}"
