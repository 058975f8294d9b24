"""What is done in columns gives what is done row by row; and what Java's patterns and texts mean."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from ottla.connect.conversion import converters
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_dates import BadPattern, date_format
from ottla.connect.conversion.java_regex import NotTranslated, compile_java, replaced_first
from ottla.connect.conversion.java_text import decimal_text, float_text, parse_decimal
from ottla.connect.conversion.topic_patterns import TopicPattern
from tests.connect.conversion.oracle import random_records

JSON = converters.BY_NAME["JsonConverter"]


def decoded(data: list[bytes]) -> tuple[list[Any], list[int]]:
    found: list[Any] = [None] * len(data)
    failed: list[int] = []
    converter = JSON(JSON.config_def.parse({}), is_key=False)
    topics = pa.array(["t"] * len(data), pa.string())
    for piece in converter.decode(topics, pa.array(data, pa.binary()), lambda at, _: failed.append(at)):
        at = range(len(data)) if piece.at is None else piece.at.to_pylist()
        values = piece.column.data if isinstance(piece.column.data, list) else piece.column.data.to_pylist()
        for place, value in zip(at, values, strict=True):
            found[place] = (piece.column.schema, value)
    return found, sorted(failed)


def encoded(data: list[bytes]) -> list[Any]:
    converter, found = JSON(JSON.config_def.parse({}), is_key=False), []
    topics = pa.array(["t"] * len(data), pa.string())
    for piece in converter.decode(topics, pa.array(data, pa.binary()), lambda at, _: None):
        told: list[int] = []
        found.append(converter.encode(topics, piece.column, lambda at, _, told=told: told.append(at)).to_pylist())
        found.append(told)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_json_in_columns_is_json_row_by_row(seed: int) -> None:
    random = Random(seed)
    schema = random_records.struct(random, 2)
    valid = random.random() < 0.7
    data = [
        random_records.envelope(schema, random_records.payload(random, {**schema, "optional": False}, valid=valid))
        for _ in range(20)
    ]
    with (
        patch("ottla.connect.conversion.converters.json.json_to_columns", lambda *_: None),
        patch("ottla.connect.conversion.converters.json.columns_to_json", lambda *_: None),
    ):
        wanted, written = decoded(data), encoded(data)
    assert decoded(data) == wanted
    assert encoded(data) == written


@pytest.mark.parametrize(
    "payload",
    [
        b'{"a":1}{"a":2}',
        b'{"a":1},"p":{"a":2}',
        b'{"a":1}}\n{"a":2',
        b'{"a":',
        b"",
        b'{"a":1,"a":2}',
        b'{"a":007}',
        b'{"a":1.0}',
        b'{"a":NaN}',
        b'{"a":"\xff"}',
        b'{"a":300}',
        b"null",
        b"[]",
    ],
)
def test_one_odd_payload_among_others_is_read_as_it_is_alone(payload: bytes) -> None:
    fields = b'[{"field":"a","type":"int8","optional":true}]'
    head = b'{"schema":{"type":"struct","optional":false,"fields":' + fields + b'},"payload":'
    good, odd = head + b'{"a":5}}', head + payload + b"}"
    alone, failed = decoded([odd])
    among, failures = decoded([good] * 10 + [odd] + [good] * 10)
    assert among[10] == alone[0]
    assert failures == [10 for _ in failed]
    assert [each[1] for at, each in enumerate(among) if at != 10] == [{"a": 5}] * 20


# --- Java


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"\p{Alpha}+\p{Digit}", "abc1", "1abc"),
        (r"(?<year>\d{4})-\k<year>", "2020-2020", "2020-2021"),
        (r"\Qa.b\E.*", "a.bc", "axbc"),
        (r"[\w.]+\z", "a.b", "a-b"),
        (r"(?i)ABC", "abc", "abd"),
        (r"a*+b", "aab", "aac"),
        (r"[^\p{Punct}]+", "abc", "a-c"),
        (r"\x41\u0042", "AB", "ab"),
    ],
)
def test_javas_patterns_match_what_they_match_in_java(pattern: str, matching: str, other: str) -> None:
    assert compile_java(pattern).fullmatch(matching)
    assert not compile_java(pattern).fullmatch(other)


@pytest.mark.parametrize("pattern", ["[a&&[b]]", "[a[b]]", r"\p{IsGreek}", "a(?i)b", "(", r"\G", "a\\", "(?u)a"])
def test_a_pattern_that_means_something_else_is_refused(pattern: str) -> None:
    with pytest.raises(NotTranslated):
        compile_java(pattern)


def test_a_replacement_is_made_as_java_makes_it() -> None:
    found = TopicPattern("(?<first>a)(b)?").found("a")
    assert found is not None
    assert replaced_first(found, r"x$1${first}$2\$") == "xaa$"
    assert replaced_first(found, "$12") == "a2"
    for wrong in ("$9", "$", "${other}", "x\\"):
        with pytest.raises(NotTranslated):
            replaced_first(found, wrong)


@pytest.mark.parametrize("pattern", ["YYYY", "w", "q", "'open", "XXXX"])
def test_a_date_pattern_that_is_not_known_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        date_format(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        ("yyyy-MM-dd", "2020-02-30", 1583020800000),
        ("yyyy-MM-dd", "2020-02-29 and more", 1582934400000),
        ("yyyyMMddHHmmssSSS", "20200229123000250", 1582979400250),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2020-02-29T12:30:00+02:00", 1582972200000),
        ("d MMM yyyy h:mm a", "29 feb 2020 12:30 AM", 1582936200000),
        ("yyyy-MM-dd HH:mm Z", "2020-02-29 12:30 -0130", 1582984800000),
    ],
)
def test_dates_are_read_as_leniently_as_java_reads_them(pattern: str, text: str, millis: int) -> None:
    assert date_format(pattern).parse(text) == millis
    with pytest.raises(DataError, match="is no date"):
        date_format(pattern).parse("x")


def test_numbers_are_written_as_java_writes_them() -> None:
    assert [float_text(number) for number in (1.0, 100.0, 1e7, 1.5e-3, 1e-4, -0.0, 12345678.9, 1e21)] == [
        "1.0", "100.0", "1.0E7", "0.0015", "1.0E-4", "-0.0", "1.23456789E7", "1.0E21",
    ]  # fmt: skip
    assert float_text(0.10000000149011612, single=True) == "0.1"
    assert [decimal_text(parse_decimal(text)) for text in ("1.50", "1E+3", "1E-7", "0.000001", "-0.00", "120")] == [
        "1.50", "1E+3", "1E-7", "0.000001", "0.00", "120",
    ]  # fmt: skip
