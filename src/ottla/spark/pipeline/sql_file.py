"""A pipeline as a SQL file: what it reads and writes stands in comments at its top, the query below.

    -- to: orders-by-country
    -- key: country
    -- stream: orders (customer string not null, euro double, at timestamp)
    -- watermark: orders at 10 seconds
    -- table: customers (customer string, country string)
    select country, sum(euro) as euro, window(at, '1 minute').start as minute ...

A stream or a table is a view under its topic's name; `orders.eu as orders_eu (...)` gives it another one. Without
columns a stream has those of the source: key, value, topic, partition, offset and so on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline

if TYPE_CHECKING:
    from ottla.spark.pipeline.topics import Topics

_COMMENT = re.compile(r"--\s*([a-z-]+)\s*:\s*(.*?)\s*$")
_INPUT = re.compile(r"(?P<topic>[\w.-]+)(?:\s+as\s+(?P<view>\w+))?(?:\s*\((?P<schema>.+)\))?", re.ASCII)
_WATERMARK = re.compile(r"(?P<view>\w+)\s+(?P<column>\w+)\s+(?P<delay>\d.*)")
_SETTINGS = ("name", "to", "mode", "every", "dead-letters", "group", "compression")
_KNOWN = (*_SETTINGS, "key", "stream", "table", "watermark", "option", "expect", "conf")


@dataclass(frozen=True)
class _Input:
    topic: str
    view: str
    schema: str | None


@dataclass
class _Header:
    settings: dict[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    streams: list[_Input] = field(default_factory=list)
    tables: list[_Input] = field(default_factory=list)
    # By view: the column of event time and the delay.
    watermarks: dict[str, tuple[str, str]] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    # By view: reason to condition.
    expect: dict[str, dict[str, str]] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)


def parse_sql(path: Path, text: str) -> Pipeline:
    """Raises OttlaError that names the file and the line."""
    header = _Header()
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("--"):
            break
        if match := _COMMENT.match(line.strip()):
            try:
                _take(header, match[1], match[2])
            except OttlaError as error:
                raise OttlaError(f"{path}, line {number}: {error}") from None
    query = "\n".join(line for line in lines if not line.lstrip().startswith("--")).strip().rstrip(";")
    if not query:
        raise OttlaError(f"{path} has no query below its comments.")
    if not header.streams:
        raise OttlaError(f"{path} reads no stream: say which at its top, as in `-- stream: orders (euro double)`.")
    given = {name.replace("-", "_"): value for name, value in header.settings.items()}
    return Pipeline(
        **{"name": path.stem.replace("_", "-"), **given},
        key=header.key,
        conf=header.conf,
        build=lambda topics: _build(topics, header, query),
    )


def _take(header: _Header, word: str, rest: str) -> None:
    if word not in _KNOWN:
        raise OttlaError(f"there is no setting '{word}': choose one of {', '.join(_KNOWN)}.")
    if word in _SETTINGS:
        header.settings[word] = rest
    elif word == "key":
        header.key = tuple(column.strip() for column in rest.split(","))
    elif word == "stream":
        header.streams.append(_input(rest))
    elif word == "table":
        header.tables.append(_input(rest, needs_schema=True))
    elif word == "watermark":
        if not (match := _WATERMARK.fullmatch(rest)):
            raise OttlaError("a watermark is a stream, its column of time and a delay, as in `orders at 10 seconds`.")
        header.watermarks[match["view"]] = (match["column"], match["delay"])
    elif word == "expect":
        view, _, rule = rest.partition(" ")
        condition, otherwise, reason = rule.rpartition(" else ")
        if not otherwise:
            raise OttlaError("a rule is a stream, a condition and a reason, as in `orders euro >= 0 else below zero`.")
        header.expect.setdefault(view, {})[reason.strip()] = condition.strip()
    else:
        name, equals, value = rest.partition("=")
        if not equals:
            raise OttlaError(f"write `{word}: NAME = VALUE`.")
        (header.options if word == "option" else header.conf)[name.strip()] = value.strip()


def _input(text: str, *, needs_schema: bool = False) -> _Input:
    match = _INPUT.fullmatch(text)
    if not match or (needs_schema and not match["schema"]):
        raise OttlaError("write a topic and its columns, as in `orders (customer string not null, euro double)`.")
    return _Input(match["topic"], match["view"] or re.sub(r"\W", "_", match["topic"]), match["schema"])


def _build(topics: Topics, header: _Header, query: str) -> Any:
    for one in header.tables:
        assert one.schema is not None
        topics.table(one.topic, one.schema).createOrReplaceTempView(one.view)
    for one in header.streams:
        frame = topics.stream(one.topic, one.schema, expect=header.expect.get(one.view), **header.options)
        if one.view in header.watermarks:
            frame = frame.withWatermark(*header.watermarks[one.view])
        frame.createOrReplaceTempView(one.view)
    return topics.spark.sql(query)
