"""A pipeline as a SQL file: what it reads and writes stands in comments at its top, the query below.

    -- to: orders-by-country
    -- key: country
    -- stream: orders (customer string not null, euro double, at timestamp)
    -- watermark: orders at 10 seconds
    -- table: customers (customer string, country string)
    select country, sum(euro) as euro, window(at, '1 minute').start as minute ...

A stream or a table is a view under its topic's name; `orders.eu as orders_eu (...)` gives it another one. Without
columns a stream has those of the source: key, value, topic, partition, offset and so on. `orders (*)` has the columns
of the schema orders-value in a registry, which `-- registry: URL` names, and `orders (*) with key` the column `key` of
orders-key as well. `-- schema: registry` writes with one, too, `-- key-schema: registry` does so for keys; `registry
json` and `registry protobuf` register schemas of these formats.

Whatever is wrong is told with the line of the file that it stands in, and nothing is said twice: of two lines that
contradict one another nobody knows which was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.schemas.registered import AVRO, JSON, PROTOBUF
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.sentences import first_sentence

if TYPE_CHECKING:
    from ottla.schemas.registry import SchemaRegistry
    from ottla.spark.pipeline.topics import Topics

_COMMENT = re.compile(r"--\s*([a-z-]+)\s*:\s*(.*?)\s*$")
_INPUT = re.compile(
    r"(?P<topic>[\w.-]+)(?:\s+as\s+(?P<view>\w+))?"
    r"(?:\s*\((?P<schema>.+)\)(?P<key>\s+with\s+key)?(?:\s+by\s+(?P<by>\w+(\s*,\s*\w+)*))?)?",
    re.ASCII,
)
_WATERMARK = re.compile(r"(?P<view>\w+)\s+(?P<column>\w+)\s+(?P<delay>\d.*)")
_POSITION = re.compile(r"[;\s(]*\bline (\d+),? pos \d+[\s;)]*$", re.MULTILINE)
_SETTINGS = ("name", "to", "mode", "every", "dead-letters", "group", "compression")
_OF_REGISTRY = ("registry", "schema", "key-schema")
_WRITTEN = {
    f"registry{word}": format
    for word, format in (("", AVRO), (" avro", AVRO), (" json", JSON), (" protobuf", PROTOBUF))
}
_ALL_COLUMNS = "*"
_KNOWN = (*_SETTINGS, *_OF_REGISTRY, "lineage", "key", "stream", "table", "watermark", "option", "expect", "conf")


@dataclass(frozen=True)
class _Input:
    topic: str
    view: str
    schema: str | None
    line: int
    # The columns that a table is divided by.
    by: tuple[str, ...] = ()
    # Whether keys are decoded by a schema of the registry.
    has_key: bool = False


@dataclass
class _Header:
    path: Path
    # What was said, and in which line.
    said: dict[tuple[str, ...], int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    # The address of the registry, and the formats of what is written with schemas there: of `schema`, `key-schema`.
    registry: str | None = None
    written: dict[str, str] = field(default_factory=dict)
    has_lineage: bool = False
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
    header = _Header(path)
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("--"):
            break
        if match := _COMMENT.match(line.strip()):
            with _at(path, number):
                _take(header, match[1], match[2], number)
    # Comments leave empty lines: Spark counts as the file does.
    query = "\n".join("" if line.lstrip().startswith("--") else line for line in lines).rstrip().rstrip(";")
    if not query:
        raise OttlaError(f"{path} has no query below its comments.")
    if not header.streams:
        raise OttlaError(f"{path} reads no stream: say which at its top, as in `-- stream: orders (euro double)`.")
    _check_views(header)
    given: dict[str, Any] = {name.replace("-", "_"): value for name, value in header.settings.items()}
    for word, format in header.written.items():
        given[word.replace("-", "_")] = replace(_registry_of(header), format=format)
    return Pipeline(
        **{"name": path.stem.replace("_", "-"), **given},
        key=header.key,
        lineage=header.has_lineage,
        conf=header.conf,
        build=lambda topics: _build(topics, header, query),
    )


def _take(header: _Header, word: str, rest: str, line: int) -> None:
    if word not in _KNOWN:
        raise OttlaError(f"there is no setting '{word}': choose one of {', '.join(_KNOWN)}.")
    if word in _SETTINGS:
        _say_once(header, line, word)
        header.settings[word] = rest
    elif word in _OF_REGISTRY:
        _say_once(header, line, word)
        if word == "registry":
            header.registry = rest
        elif (format := _WRITTEN.get(" ".join(rest.lower().split()))) is None:
            raise OttlaError(
                f"write `-- {word}: registry`, if what is written is to have a schema there, or `registry json`, or "
                "`registry protobuf`."
            )
        else:
            header.written[word] = format
    elif word == "lineage":
        _say_once(header, line, word)
        if rest not in ("true", "false"):
            raise OttlaError("write `-- lineage: true`, if records are to name what they were made of.")
        header.has_lineage = rest == "true"
    elif word == "key":
        _say_once(header, line, word)
        header.key = tuple(column.strip() for column in rest.split(","))
    elif word in ("stream", "table"):
        made = _input(rest, line, is_table=word == "table")
        _say_once(header, line, "view", made.view)
        (header.streams if word == "stream" else header.tables).append(made)
    elif word == "watermark":
        if not (match := _WATERMARK.fullmatch(rest)):
            raise OttlaError("a watermark is a stream, its column of time and a delay, as in `orders at 10 seconds`.")
        _say_once(header, line, word, match["view"])
        header.watermarks[match["view"]] = (match["column"], match["delay"])
    elif word == "expect":
        view, _, rule = rest.partition(" ")
        condition, otherwise, reason = rule.rpartition(" else ")
        if not otherwise:
            raise OttlaError("a rule is a stream, a condition and a reason, as in `orders euro >= 0 else below zero`.")
        _say_once(header, line, word, view, reason.strip())
        header.expect.setdefault(view, {})[reason.strip()] = condition.strip()
    else:
        name, equals, value = rest.partition("=")
        if not equals:
            raise OttlaError(f"write `{word}: NAME = VALUE`.")
        _say_once(header, line, word, name.strip())
        (header.options if word == "option" else header.conf)[name.strip()] = value.strip()


def _say_once(header: _Header, line: int, *what: str) -> None:
    before = header.said.setdefault(what, line)
    if before != line:
        raise OttlaError(f"`{' '.join(what)}` was said in line {before} already: keep one of them.")


def _check_views(header: _Header) -> None:
    """A watermark or a rule for a stream that is not there would do nothing, without a word."""
    views = [stream.view for stream in header.streams]
    for (word, *about), line in header.said.items():
        if word in ("watermark", "expect") and about[0] not in views:
            raise OttlaError(
                f"{header.path}, line {line}: there is no stream '{about[0]}' here, there is {', '.join(views)}."
            )


def _input(text: str, line: int, *, is_table: bool) -> _Input:
    match = _INPUT.fullmatch(text)
    if not match or (is_table and not match["schema"]) or (match["by"] and not is_table):
        raise OttlaError("write a topic and its columns, as in `orders (customer string not null, euro double)`.")
    by = tuple(name.strip() for name in (match["by"] or "").split(",") if name.strip())
    view = match["view"] or re.sub(r"\W", "_", match["topic"])
    return _Input(match["topic"], view, match["schema"], line, by, has_key=match["key"] is not None)


def _registry_of(header: _Header) -> SchemaRegistry:
    from ottla.schemas.registry import SchemaRegistry

    return SchemaRegistry() if header.registry is None else SchemaRegistry(header.registry)


def _schema_of(header: _Header, given: str) -> str | SchemaRegistry:
    return _registry_of(header) if given.strip() == _ALL_COLUMNS else given


def _build(topics: Topics, header: _Header, query: str) -> Any:
    path = header.path
    for table in header.tables:
        assert table.schema is not None
        with _at(path, table.line):
            key = _registry_of(header) if table.has_key else None
            frame = topics.table(table.topic, _schema_of(header, table.schema), by=table.by, key_schema=key)
            frame.createOrReplaceTempView(table.view)
    for stream in header.streams:
        rules = header.expect.get(stream.view)
        with _at(path, _line_of_rules(header, stream)):
            schema = None if stream.schema is None else _schema_of(header, stream.schema)
            key = _registry_of(header) if stream.has_key else None
            frame = topics.stream(stream.topic, schema, expect=rules, key_schema=key, **header.options)
        if stream.view in header.watermarks:
            with _at(path, header.said["watermark", stream.view]):
                frame = frame.withWatermark(*header.watermarks[stream.view])
        frame.createOrReplaceTempView(stream.view)
    with _at(path, 0):
        return topics.spark.sql(query)


def _line_of_rules(header: _Header, stream: _Input) -> int:
    """Where what Spark says of a stream's rules belongs: to the rule, if there is but one."""
    lines = [line for (word, *about), line in header.said.items() if word == "expect" and about[0] == stream.view]
    return lines[0] if len(lines) == 1 else stream.line


@contextmanager
def _at(path: Path, line: int) -> Iterator[None]:
    """Tells what is wrong with this line; without one (0) Spark counts in the file itself."""
    try:
        yield
    except OttlaError as error:
        # Of other kinds are those that may pass: they are not about the file.
        if type(error) is not OttlaError:
            raise
        raise OttlaError(f"{path}, line {line}: {error}") from None
    except Exception as error:
        if type(error).__name__ not in ("AnalysisException", "ParseException"):
            raise
        position = _POSITION.search(str(error))
        where = line or (int(position[1]) if position else 0)
        sentence = _POSITION.sub("", first_sentence(str(error)).rstrip(".")).rstrip(".; ")
        raise OttlaError(f"{path}{f', line {where}' if where else ''}: {sentence}.") from None
