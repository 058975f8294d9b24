"""What is called plainly good without Spark is good for Spark too, and joined on the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ottla.spark.pipeline.decoding import REASON, judged, parse_schema
from ottla.spark.pipeline.tables.joined_on import text_column
from ottla.spark.pipeline.tables.plain_json import Doubtful, PlainJson
from ottla.spark.source.table import TableSource

SCHEMA = (
    "a string, b int not null, c bigint, d boolean, e double, f float, g tinyint, h array<int>, "
    "i struct<x:int,y:array<struct<x:string>>>, j date"
)
BY = ("a", "b", "c", "d")
SCALARS = [
    "", "x", "é", "\u0000", "\n", "😀", '"', "1", "true", 0, 1, -1, -0.0, 0.5, 1e-7, 1.0, 127, 128, -129, 2**31 - 1,
    2**31, 2**53, 2**63 - 1, 2**63, 1e37, 1e39, 1e308, True, False, None, [], {}, [1], {"x": 1},
    [1, None], [1, "x"], {"x": 1, "y": []}, {"x": 2, "y": [{"x": "t"}, None]}, {"y": [{"x": 1}]}, "2024-01-01",
]  # fmt: skip
ODD = [
    '{"b":1}{"b":2}',
    '{"b":1} x',
    '[{"b":1}]',
    "1",
    '"text"',
    "null",
    "",
    " ",
    '{"b":NaN}',
    '{"b":1,"e":NaN}',
    '{"b":1,"e":Infinity}',
    '{"b":01}',
    '{"b":1,}',
    "{'b':1}",
    '{"b":1,"b":2}',
    '{"B":1}',
    '{"b":1,"a":"\\ud800"}',
    '{"b":1,"a":"\\ud83d\\ude00"}',
    '\ufeff{"b":1}',
    ' {"b":1} ',
    '\n{"b":1}\t',
    '{"b":1,"z":' + "[" * 900 + "]" * 900 + "}",
    '{"b":1,"z":' + "9" * 1100 + "}",
    '{"b":1,"e":1e999}',
    '{"b":1.0}',
    '{"b":"1"}',
    '{"b":1e0}',
    '{"b":1,"z":"\x01"}',
    '{"b":1/*x*/}',
    '{"b":1,"a":"' + "x" * 5000 + '"}',
    '{"b":-0}',
    '{"b":1,"e":-0}',
]


def values(count: int = 3_000) -> list[bytes]:
    chance = random.Random(7)
    made = [text.encode() for text in ODD] + [b"\xff", b'{"b":1,"a":"\xff"}', b"\x00", '{"b":1}'.encode("utf-16")]
    for _ in range(count):
        names = chance.sample("abcdefghiijzA", chance.randint(0, 7))
        row = {"b": 1} if chance.random() < 0.7 else {}
        row |= {name: chance.choice(SCALARS) for name in names}
        text = json.dumps(row, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1]))
        if chance.random() < 0.1:
            place = chance.randrange(len(text))
            text = text[:place] + chance.choice('{}[]",:0x ') + text[place + 1 :]
        made.append(text.encode())
    return made


def plain(value: bytes, found: PlainJson) -> tuple[bool, str | None]:
    try:
        return True, found.joined_on(value)
    except Doubtful:
        return False, None


def test_what_is_plainly_good_is_good_for_spark_and_joined_on_the_same(spark: Any) -> None:
    schema = parse_schema(SCHEMA)
    given = values()
    rows = [(b"k", value, "t", 0, number, None, 0, None) for number, value in enumerate(given)]
    frame = judged(spark.createDataFrame(rows, TableSource({}).schema()), schema, None)
    text = text_column([frame[name] for name in BY])
    by_spark = {row[0]: row[1:] for row in frame.select("record.offset", f"{REASON}", text).collect()}
    ours = PlainJson(schema, BY)
    yes = 0
    for number, value in enumerate(given):
        is_good, joined_on = plain(value, ours)
        if is_good:
            yes += 1
            assert by_spark[number] == (None, joined_on), value
    assert yes > len(given) / 10  # else it would be of no use


@pytest.mark.parametrize(
    ("by", "joined_on"),
    [(("a",), "x"), (("b",), "1"), (("d",), "true"), (("a", "b"), "1:x1:1"), (("c",), None), (("a", "c"), None)],
)
def test_what_a_row_is_joined_on_is_one_text(spark: Any, by: tuple[str, ...], joined_on: str | None) -> None:
    assert PlainJson(parse_schema(SCHEMA), by).joined_on(b'{"a":"x","b":1,"d":true,"e":2}') == joined_on
