"""Expressions and rows on columns of Arrow: what they give is what Python gives record by record."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from ottla.kernel.json_values import IS_COMPILED  # noqa: E402
from ottla.streams import serdes, sql  # noqa: E402
from ottla.streams.engine.row_columns import NotHeld, RowColumns, struct_of  # noqa: E402
from ottla.streams.engine.vectors import TYPES, Columns, column_of  # noqa: E402
from ottla.streams.sql.schema import parse_schema  # noqa: E402
from tests.streams.sql.cases import CASES, JSON, JSON_SCHEMA, LEAST, MOST, SCHEMA, full, same  # noqa: E402

ROW = serdes.row(SCHEMA)
_TEXTS = ["", "a", "abc", "A b", "é", "straße", "\U0001f600", "42", " -7 ", "1e3", "NaN", "true", "no", "9" * 25, "a%c"]
_WHOLES = [0, 1, -1, 2, 3, 7, -40, 2**31, 2**53 + 1, MOST, LEAST, MOST - 1]
_REALS = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 1e-300, 1e300, -1e19, 4503599627370495.5, math.nan, math.inf, -math.inf]
_VALUES: dict[str, list[Any]] = {"STRING": _TEXTS, "BIGINT": _WHOLES, "DOUBLE": _REALS, "BOOLEAN": [True, False]}
_PLAIN_VALUES = _VALUES | {"BIGINT": [0, 1, -1, 2, 3, 7, -40], "DOUBLE": [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, -7.75]}


def columns_of(rows: list[dict[str, Any]], keys: list[Any]) -> Columns:
    made = {name: pa.array([row[name] for row in rows], TYPES[kind]) for name, kind in ROW.schema}
    return Columns(made, pa.array(keys, pa.string()), pa.array(range(len(rows)), pa.int64()))


def assert_same(texts: list[str], rows: list[dict[str, Any]], keys: list[Any]) -> None:
    chosen = sql(", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))).selection(serdes.string, ROW)
    columns = columns_of(rows, keys)
    for text, (_, expression) in zip(texts, chosen.columns, strict=True):
        found = column_of(expression, columns)
        assert len(found) == len(rows)
        for number, (row, key, value) in enumerate(zip(rows, keys, found.to_pylist(), strict=True)):
            expected = expression.evaluate(key, row, number)
            assert same(value, expected), f"{text} of {row}: {value!r} on columns, {expected!r} by itself"


def test_every_case_for_every_row() -> None:
    rows = [full(SCHEMA, given) for _, given, _ in CASES]
    assert_same(list(dict.fromkeys(text for text, _, _ in CASES)), rows, ["key"] * len(rows))


def test_columns_of_no_records() -> None:
    assert_same(["a + 1", "upper(s)", "1", "NULL", "if(p, s, t)", "x % y", "_key", "_timestamp"], [], [])


class Expressions:
    """By chance, as deep as asked for."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def of(self, kind: str, depth: int) -> str:
        if depth == 0 or self._chance.random() < 0.1:
            return self._leaf(kind)
        text: str = getattr(self, f"_{kind.lower()}")(depth - 1)
        if self._chance.random() < 0.15:
            other = self.of(kind, depth - 1)
            condition = self.of("BOOLEAN", depth - 1)
            forms = ["if({c}, {a}, {b})", "coalesce({a}, {b})", "nullif({a}, {b})"]
            forms.append("CASE WHEN {c} THEN {a} WHEN p THEN {b} END")
            text = self._chance.choice(forms).format(a=text, b=other, c=condition)
        return text

    def _leaf(self, kind: str) -> str:
        names = {"STRING": ["s", "t", "_key"], "BIGINT": ["a", "b", "_timestamp"], "DOUBLE": ["x", "y"]}
        if self._chance.random() < 0.7:
            return self._chance.choice(names.get(kind, ["p", "q"]))
        value = self._chance.choice([each for each in _VALUES[kind] if each == each and each not in (LEAST, -math.inf)])
        if kind == "STRING":
            return "'" + value + "'"
        if kind == "DOUBLE":
            return f"CAST('{value!r}' AS DOUBLE)"
        return f"({value})" if kind == "BIGINT" else str(value).upper()

    def _pair(self, kind: str, depth: int, *forms: str) -> str:
        return self._chance.choice(forms).format(a=self.of(kind, depth), b=self.of(kind, depth))

    def _bigint(self, depth: int) -> str:
        if self._chance.random() < 0.3:
            inner = self._chance.choice([("STRING", "length({})"), ("DOUBLE", "floor({})"), ("DOUBLE", "ceil({})"),
                                         ("STRING", "CAST({} AS BIGINT)"), ("DOUBLE", "CAST({} AS BIGINT)"),
                                         ("BOOLEAN", "CAST({} AS BIGINT)")])  # fmt: skip
            return inner[1].format(self.of(inner[0], depth))
        forms = ["({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} DIV {b})", "({a} % {b})", "(-{a})", "abs({a})"]
        return self._pair("BIGINT", depth, *forms)

    def _double(self, depth: int) -> str:
        if self._chance.random() < 0.3:
            return self._pair("BIGINT", depth, "({a} / {b})", "CAST({a} AS DOUBLE)", "({a} + 0.5)")
        forms = ["({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} / {b})", "({a} % {b})", "(-{a})", "abs({a})"]
        return self._pair("DOUBLE", depth, *forms, "round({a}, 15)", "round({a})")

    def _string(self, depth: int) -> str:
        forms = ["upper({a})", "lower({a})", "trim({a})", "concat({a}, '-', {b})", "({a} || {b})", "substring({a}, 2)"]
        if self._chance.random() < 0.3:
            return f"substring({self.of('STRING', depth)}, {self.of('BIGINT', depth)}, {self.of('BIGINT', depth)})"
        return self._pair("STRING", depth, *forms, "CAST(length({a}) AS STRING)")

    def _boolean(self, depth: int) -> str:
        kind = self._chance.choice(["STRING", "BIGINT", "DOUBLE", "BOOLEAN"])
        signs = ["=", "<>", "<", ">", "<=", ">=", "<=>"]
        forms = ["({a} IS NULL)", "({a} IN ({b}, NULL))", *(f"({{a}} {sign} {{b}})" for sign in signs)]
        if kind == "BOOLEAN":
            forms = ["({a} AND {b})", "({a} OR {b})", "(NOT {a})", "({a} <=> {b})"]
        if kind == "STRING":
            forms += ["startswith({a}, {b})", "endswith({a}, 'a')", "contains({a}, 'b')", "contains({a}, '')",
                      "({a} LIKE 'a%')", "CAST({a} AS BOOLEAN)"]  # fmt: skip
        return self._pair(kind, depth, *forms)


def rows_by_chance(chance: random.Random, count: int, values: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [
        {name: None if chance.random() < 0.15 else chance.choice(values[kind]) for name, kind in ROW.schema}
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_expressions_by_chance(seed: int) -> None:
    """Every second time with values of which Arrow is sure."""
    chance = random.Random(seed)
    expressions = Expressions(chance)
    texts = [expressions.of(chance.choice(list(_VALUES)), 3) for _ in range(60)]
    rows = rows_by_chance(chance, 40, _PLAIN_VALUES if seed % 2 else _VALUES)
    assert_same(texts, rows, [chance.choice([*_TEXTS, None]) for _ in rows])


def test_what_is_computed_beyond_what_python_takes_is_null_and_no_error() -> None:
    """Thousands of digits in a text; more digits of a fraction than decimals have by themselves."""
    chosen = sql("CAST(s AS BIGINT) AS a, round(x, 15) AS x, CAST(t AS BIGINT) AS b").selection(serdes.string, ROW)
    row = full(SCHEMA, {"s": "9" * 5000, "t": "-" + "0" * 5000 + "7", "x": 4503599627370495.5})
    assert chosen.row("key", row, 0) == {"a": None, "x": 4503599627370495.5, "b": -7}


# --- rows


def test_rows_are_read_and_written_as_the_serde_does() -> None:
    serde = serdes.row(JSON_SCHEMA)
    columns = RowColumns(serde)
    texts: list[bytes | None] = [text.encode() for text, _ in JSON]
    rows, wrong = columns.decode(pa.array([*texts, None, b'{"s":"\xff"}'], pa.binary()))
    expected = [row for _, row in JSON]
    assert sorted(wrong) == [number for number, row in enumerate(expected) if row is None] + [len(texts) + 1]
    for number, row in enumerate(expected):
        if row is not None:
            assert same(rows[number].as_py(), full(JSON_SCHEMA, row)), texts[number]
    assert rows[len(texts)].as_py() is None
    written = columns.encode(rows.drop_null())
    assert written.to_pylist() == [serde.serialize("t", full(JSON_SCHEMA, row)) for row in expected if row is not None]


def test_half_a_character_is_read_by_python_and_held_by_no_column() -> None:
    with pytest.raises(NotHeld):
        RowColumns(serdes.row("s STRING")).decode(pa.array([b'{"s":"a"}', b'{"s":"\\ud800"}'], pa.binary()))


@pytest.mark.parametrize("seed", range(4))
def test_rows_by_chance(seed: int) -> None:
    """With names that have to be escaped."""
    chance = random.Random(seed)
    serde = serdes.row('`a"b` STRING, `é\\` DOUBLE, n BIGINT, `sp ace` BOOLEAN')
    rows = []
    for _ in range(300):
        row: dict[str, Any] = {
            name: None if chance.random() < 0.2 else chance.choice(_VALUES[kind]) for name, kind in serde.schema
        }
        if row['a"b'] is not None and chance.random() < 0.5:
            row['a"b'] = "".join(chance.choice('\\"/\b\f\n\r\t\x00\x1f\x7f aé☃\U0001f600') for _ in range(9))
        rows.append(row)
    data = [serde.serialize("t", row) for row in rows]
    columns = RowColumns(serde)
    found, wrong = columns.decode(pa.array(data, pa.binary()))
    assert not wrong
    for one, row in zip(found.to_pylist(), rows, strict=True):
        assert same(one, row)
    assert columns.encode(found).to_pylist() == data
    assert columns.encode(found.slice(17, 100)).to_pylist() == data[17:117]


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_were_damaged_are_read_alike_or_not_at_all(seed: int) -> None:
    """Of texts that people might write, with bytes changed, doubled and lost."""
    chance = random.Random(seed)
    serde = serdes.row(JSON_SCHEMA)
    # No halves of characters: of those another test tells.
    texts = [text.encode() for text, _ in JSON if text and "ud83d" not in text]
    data = []
    for _ in range(1500):
        one = bytearray(chance.choice(texts))
        for _ in range(chance.randrange(3)):
            place = chance.randrange(len(one) + 1)
            piece = chance.choice(
                [b"", b"", b'"', b",", b"}", b"{", b":", b"\\u00", b"e5", b"-", b"0", b"9" * 30, b"\xc3"]
            )
            one[place : place + chance.randrange(3)] = piece
        data.append(bytes(one))
    expected: list[Any] = []
    for each in data:
        try:
            expected.append(serde.deserialize("t", each))
        except ValueError:
            expected.append(None)
    found, wrong = RowColumns(serde).decode(pa.array(data, pa.binary()))
    assert sorted(wrong) == [place for place, row in enumerate(expected) if row is None]
    assert 100 < len(wrong) < 1400
    for one, row, text in zip(found.to_pylist(), expected, data, strict=True):
        assert row is None or same(one, row), text


def test_without_a_compiler_the_serde_reads_and_writes_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.kernel import json_encode_pure, json_values_pure
    from ottla.streams.engine import row_columns

    if not IS_COMPILED:
        pytest.skip("there is no compiled form")
    monkeypatch.setattr(row_columns, "JsonDecoder", json_values_pure.JsonDecoder)
    monkeypatch.setattr(row_columns, "JsonEncoder", json_encode_pure.JsonEncoder)
    test_rows_are_read_and_written_as_the_serde_does()
    test_rows_by_chance(1)


def test_a_struct_has_the_types_of_its_schema() -> None:
    assert struct_of(parse_schema("a BIGINT, s STRING")) == pa.struct([("a", pa.int64()), ("s", pa.string())])
