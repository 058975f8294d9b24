"""Printing: tables for people, JSON and YAML for programs, notices for stderr.

Only results go to stdout. Colour is used on a terminal only, and never when NO_COLOR is set.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

import click

from ottla.cli.settings import Settings
from ottla.common.errors import OttlaError

Json = None | bool | int | float | str | Sequence["Json"] | dict[str, "Json"]


def coloured(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None = None, *, bold: bool = False, stream: TextIO | None = None) -> str:
    """`text` in colour where the stream (stdout unless said) can show it."""
    if (colour is None and not bold) or not coloured(stream or sys.stdout):
        return text
    return click.style(text, fg=colour, bold=bold or None)


def notice(text: str, colour: str | None = None) -> None:
    """One line for the person, on stderr."""
    sys.stderr.write(paint(text, colour, stream=sys.stderr) + "\n")
    sys.stderr.flush()


def show(settings: Settings, data: Json, lines: Callable[[], Iterable[str]]) -> None:
    """The result of a command: `data` for JSON and YAML, `lines()` for a person."""
    if settings.output == "json":
        import json

        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    elif settings.output == "yaml":
        from ottla.cli.yaml_text import to_yaml

        sys.stdout.write(to_yaml(data))
    else:
        for line in lines():
            sys.stdout.write(line + "\n")


def done(settings: Settings, data: Json, sentence: str) -> None:
    """The outcome of a change: one sentence, or `data`."""
    show(settings, data, lambda: [sentence])


def confirm(settings: Settings, question: str) -> None:
    """Asks unless -y was given; anything but yes ends the command."""
    if settings.yes:
        return
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except OSError:
        answer = ""
    if not answer:
        sys.stderr.write("\n")
        raise OttlaError("nobody answered, so nothing was changed: add -y to go ahead, or --dry-run to look.")
    if answer.strip().lower() not in ("y", "yes"):
        raise OttlaError("nothing was changed.")


@dataclass(frozen=True)
class Planned:
    """A change that is shown before it is made: the table first and a question, or JSON once it is done."""

    settings: Settings
    data: list[dict[str, Json]]
    lines: list[str]

    def agreed(self, question: str, nothing: str) -> bool:
        """Whether to go ahead; a dry run and an empty plan say so and do not."""
        if not self.data:
            show(self.settings, [], lambda: [nothing])
            return False
        if self.settings.dry_run or self.settings.output == "table":
            show(self.settings, self.data, lambda: self.lines)
        if self.settings.dry_run:
            return False
        confirm(self.settings, question)
        return True

    def done(self, sentence: str) -> None:
        show(self.settings, self.data, lambda: [sentence])


# -- tables --------------------------------------------------------------------------------------------------------

Cell = str | int | float | None
# Names of groups, members and clients are whatever their owners say, also what moves a terminal's cursor, turns text
# around or ends the line. Colours are our own.
_CONTROL = re.compile(r"\x1b(?!\[[0-9;]*m)|[\x00-\x1a\x1c-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Aligned columns; a column of numbers is aligned to the right; None is shown as a dash."""
    body = [list(row) for row in rows]
    right = [
        any(isinstance(row[i], int | float) for row in body) and all(not isinstance(row[i], str) for row in body)
        for i in range(len(headings))
    ]
    cells = [[_cell(cell) for cell in row] for row in body]
    widths = [max(len(text) for text in column) for column in zip(headings, *cells, strict=True)]

    def line(texts: Sequence[str]) -> str:
        aligned = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        return "  ".join(aligned).rstrip()

    return [paint(line(headings), bold=True), *map(line, cells)]


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else printable(str(value))


def printable(text: str) -> str:
    """In one line, and nothing in it but text and our colours."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def facts(pairs: Iterable[tuple[str, Cell]]) -> list[str]:
    """Name and value, one per line, values aligned."""
    shown = [(name, _cell(value)) for name, value in pairs]
    widest = max((len(name) for name, _ in shown), default=0)
    return [f"{paint(name.ljust(widest), bold=True)}  {value}" for name, value in shown]


def human_bytes(count: float) -> str:
    """1536 -> 1.5 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}".replace(".0 ", " ")
        count /= 1024
    raise AssertionError


def human_ms(ms: int) -> str:
    """604800000 -> 7 d; a number that is not whole in any unit keeps one decimal of the largest that fits."""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if abs(ms) >= size:
            return f"{ms / size:.1f} {unit}".replace(".0 ", " ")
    return f"{ms} ms"


def plural(count: int, noun: str) -> str:
    """`3 records`, `1 record`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def at_most(count: int, noun: str) -> str:
    """`at most 3 records`, where offsets are counted: compaction leaves gaps, transaction markers take some."""
    return f"at most {plural(count, noun)}" if count else f"no {noun}s"
