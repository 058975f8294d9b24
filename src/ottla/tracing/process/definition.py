"""What a business process is expected to do, read from a small TOML file. PURE but for the reading of the file.

name = "orders"
within = "2h"                        # from the first step to the last

[[step]]
name = "order"
topic = "orders"
id = "key"                           # which order: key, traceparent, header:NAME or json:PATH

[[step]]
name = "payment"
topic = "payments"
id = "json:order.id"
when = { "json:status" = "paid" }    # other records of the topic are none of this step
within = "10m"                       # after the step before

[[step]]
name = "shipping"
topic = "shipments"
id = "header:order"
within = "1h"
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.common.errors import OttlaError
from ottla.tracing.criteria import Criterion, Headers, parse_criterion

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:ms|s|m|h|d|w))+", re.ASCII)
_PART = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_OF_PROCESS = ("name", "group", "within", "keep", "tolerance", "instances_max", "cases_max", "step")
_OF_STEP = ("name", "topic", "id", "when", "within", "optional", "repeats")
INSTANCES_MAX = 100_000
CASES_MAX = 10_000


@dataclass(frozen=True)
class Step:
    name: str
    topic: str
    id: Criterion
    # All of them must hold: a criterion, and the value that it has to find.
    when: tuple[tuple[Criterion, bytes], ...] = ()
    # After the step before; None where only the limit of the whole process counts.
    within_ms: int | None = None
    is_optional: bool = False
    may_repeat: bool = False

    def id_of(self, key: bytes | None, value: bytes | None, headers: Headers) -> bytes | None:
        return self.id.value_of(key, value, headers)

    def holds(self, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        return all(criterion.value_of(key, value, headers) == wanted for criterion, wanted in self.when)


@dataclass(frozen=True)
class Process:
    name: str
    steps: tuple[Step, ...]
    # From the first step to the last.
    within_ms: int | None = None
    # How long an instance is remembered after its limits, to see duplicates and what comes late.
    keep_ms: int = 0
    # By how much the clocks of producers may differ.
    tolerance_ms: int = 0
    instances_max: int = INSTANCES_MAX
    cases_max: int = CASES_MAX
    group: str = ""

    @property
    def horizon_ms(self) -> int:
        """An instance is judged for good and forgotten this long after its first record."""
        limits = sum(step.within_ms or 0 for step in self.steps)
        return max(self.within_ms or 0, limits) + self.keep_ms + self.tolerance_ms

    @property
    def topics(self) -> list[str]:
        return sorted({step.topic for step in self.steps})


def load_process(path: str | Path) -> Process:
    """Raises OttlaError that says what is wrong with the file."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OttlaError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OttlaError(f"{path} is not TOML: {error}.") from None
    return parse_process(data, str(path))


def parse_process(data: Mapping[str, Any], where: str = "the process") -> Process:
    _known(data, _OF_PROCESS, where)
    name = _text(data, "name", where)
    if not _NAME.fullmatch(name):
        raise OttlaError(f"{where}: '{name}' cannot be its name: take up to 100 of letters, digits, '.', '_' and '-'.")
    rows = data.get("step")
    if not isinstance(rows, list) or len(rows) < 2 or not all(isinstance(row, dict) for row in rows):
        raise OttlaError(f"{where} needs two steps at least: write [[step]] with name, topic and id for each.")
    steps = tuple(_step(row, f"{where}, step {number + 1}") for number, row in enumerate(rows))
    for number, step in enumerate(steps):
        if step.name in {other.name for other in steps[:number]}:
            raise OttlaError(f"{where} has two steps called '{step.name}'.")
    if steps[0].within_ms is not None or steps[0].is_optional:
        raise OttlaError(f"{where}: nothing comes before the first step, so it has no `within` and is not optional.")
    within_ms = _duration(data, "within", where)
    if within_ms is None and any(step.within_ms is None for step in steps[1:]):
        raise OttlaError(f"{where} says no `within`, and neither do all of its steps: nothing would ever be overdue.")
    limits = sum(step.within_ms or 0 for step in steps)
    keep_ms = _duration(data, "keep", where)
    return Process(
        name,
        steps,
        within_ms,
        keep_ms=max(within_ms or 0, limits) if keep_ms is None else keep_ms,
        tolerance_ms=_duration(data, "tolerance", where) or 0,
        instances_max=_count(data, "instances_max", INSTANCES_MAX, where),
        cases_max=_count(data, "cases_max", CASES_MAX, where),
        group=_text(data, "group", where) if "group" in data else f"ottla-process-{name}",
    )


def _step(row: Mapping[str, Any], where: str) -> Step:
    _known(row, _OF_STEP, where)
    when = row.get("when", {})
    if not isinstance(when, dict):
        raise OttlaError(f'{where}: `when` is a table, such as {{ "json:status" = "paid" }}.')
    try:
        return Step(
            _text(row, "name", where),
            _text(row, "topic", where),
            parse_criterion(_text(row, "id", where)),
            tuple((parse_criterion(text), _value(value, text, where)) for text, value in when.items()),
            _duration(row, "within", where),
            _flag(row, "optional", where),
            _flag(row, "repeats", where),
        )
    except OttlaError as error:
        told = str(error)
        raise OttlaError(told if told.startswith(where) else f"{where}: {told}") from None


def _known(row: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in row:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            raise OttlaError(f"{where} knows no '{name}': {f'did you mean {near[0]}?' if near else ', '.join(names)}")


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise OttlaError(f"{where} needs a {name}, in quotes.")
    return value


def _value(value: Any, name: str, where: str) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if not isinstance(value, str | int | float):
        raise OttlaError(f"{where}: what '{name}' has to be is text, a number, true or false.")
    return str(value).encode()


def _flag(row: Mapping[str, Any], name: str, where: str) -> bool:
    value = row.get(name, False)
    if not isinstance(value, bool):
        raise OttlaError(f"{where}: {name} is true or false.")
    return value


def _count(row: Mapping[str, Any], name: str, default: int, where: str) -> int:
    value = row.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OttlaError(f"{where}: {name} is a whole number above 0.")
    return value


def _duration(row: Mapping[str, Any], name: str, where: str) -> int | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        raise OttlaError(f'{where}: {name} is a time such as "30s", "15m" or "1h30m", not {value!r}.')
    return sum(int(count) * _UNIT_MS[unit] for count, unit in _PART.findall(value))
