"""Which record's path somebody wants to see, as it stands in the address of the page, and what of it they may see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.common.errors import OttlaError
from ottla.common.moments import DURATION, UNIT_MS
from ottla.common.where import Record
from ottla.console.records.masking import Masks, masked
from ottla.tracing import Position, Raw, View
from ottla.tracing.criteria import parse_criterion
from ottla.tracing.model import LINEAGE

WINDOW = "1h"
_WINDOW_MS_MAX = 3_653 * UNIT_MS["d"]
_BY_MAX, _TOPICS_MAX, _TEXT_MAX = 8, 50, 249
_PARTITION = re.compile(r"\d{1,9}", re.ASCII)
_OFFSET = re.compile(r"\d{1,18}", re.ASCII)
_WINDOW = re.compile(r"(\d{1,9}(ms|s|m|h|d|w))+", re.ASCII)


@dataclass(frozen=True)
class Story:
    start: Position
    by: tuple[str, ...]
    topics: tuple[str, ...]
    window_ms: int


def parse_story(given: Sequence[tuple[str, str]]) -> Story | None:
    """Of the parameters of an address; None if it names no record. Raises OttlaError, which says what is wrong."""
    last = {name: value.strip() for name, value in given}
    if not last.get("topic"):
        return None
    topic, partition, offset = last["topic"], last.get("partition") or "0", last.get("offset") or ""
    if not _PARTITION.fullmatch(partition):
        raise OttlaError(f"a partition is a whole number, not '{partition[:40]}'.")
    if not _OFFSET.fullmatch(offset):
        raise OttlaError(f"an offset is a whole number, not '{offset[:40]}': each record's page has it.")
    by = _listed(given, "by", _BY_MAX)
    for text in by:
        if text != LINEAGE:
            parse_criterion(text)
    topics = _listed(given, "topics", _TOPICS_MAX)
    return Story(Position(topic, int(partition), int(offset)), by, topics, _window_ms(last.get("window") or WINDOW))


def _listed(given: Sequence[tuple[str, str]], name: str, most: int) -> tuple[str, ...]:
    """A parameter may come several times, and have commas."""
    texts = [part.strip() for key, value in given if key == name for part in _parts(value) if part.strip()]
    if len(texts) > most:
        raise OttlaError(f"at most {most} can be listed under '{name}', not {len(texts)}.")
    for text in texts:
        if len(text) > _TEXT_MAX:
            raise OttlaError(f"'{text[:40]}...' under '{name}' is longer than {_TEXT_MAX} characters.")
    return tuple(dict.fromkeys(texts))


def _parts(text: str) -> list[str]:
    """Commas separate, but not in $["a, b"]. From the end, so that each letter is looked at once: a pattern that looks
    for the next bracket from every comma takes seconds for an address full of them."""
    parts, end, is_inside = [], len(text), False
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "[]":
            is_inside = text[at] == "]"
        elif text[at] == "," and not is_inside:
            parts.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(parts)]


def _window_ms(text: str) -> int:
    if not _WINDOW.fullmatch(text):
        raise OttlaError(f"a window is a time such as 30s, 15m, 1h or 2d, not '{text[:40]}'.")
    window_ms = sum(int(count) * UNIT_MS[unit] for count, unit in DURATION.findall(text))
    if window_ms > _WINDOW_MS_MAX:
        raise OttlaError("a window is ten years at most.")
    return window_ms


def masking_view(masks: Masks) -> View:
    """Records as those see them who may not see everything: by what is hidden nothing is found, either."""

    def view(position: Position, raw: Raw) -> Raw:
        paths = masks.of(position.topic)
        if not paths:
            return raw
        hidden = masked(Record(*position, 0, raw.key, raw.value, raw.headers), paths)
        return Raw(hidden.key, hidden.value, tuple(hidden.headers))

    return view
