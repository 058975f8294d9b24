"""What the kernel reads from JSON is what Python's parser would have read, and what it leaves to it is little."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ottla.schemas.json_columns as json_columns
from ottla.kernel import json_steps, json_values_pure
from ottla.schemas.json_columns import JsonColumns
from ottla.schemas.registered import JSON, Registered

compiled = pytest.importorskip(
    "ottla.kernel._json_values", reason="the kernel is not compiled here: run `python hatch_build.py`"
)
HEAD = b"\x00\x00\x00\x00\x07"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "n": {"type": ["number", "null"]},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "any": {},
        "l": {"type": "array", "items": {"type": "integer"}},
        "ll": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        "m": {"type": "object", "additionalProperties": {"type": "number"}},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}, "ü": {}}, "required": ["x", "other"]},
        "": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "boolean"}}}},
    },
    "required": ["i"],
}


def columns(schema: Any, kernel: Any) -> JsonColumns:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_columns, "JsonDecoder", kernel.JsonDecoder)
        return JsonColumns(Registered(7, JSON, json.dumps(schema)))


FAST, SLOW = columns(SCHEMA, compiled), columns(SCHEMA, json_values_pure)


def check(values: list[bytes | None], fast: JsonColumns = FAST, slow: JsonColumns = SLOW) -> None:
    array = pa.array(values, pa.binary())
    rows, reasons = fast.decode(array)
    expected_rows, expected_reasons = slow.decode(array)
    rows.validate(full=True)
    # As text: NaN is not equal to itself, -0.0 is equal to 0.0.
    assert repr(rows.to_pylist()) == repr(expected_rows.to_pylist())
    assert reasons.to_pylist() == expected_reasons.to_pylist()


NAMES = st.sampled_from(["i", "n", "s", "b", "any", "l", "ll", "m", "o", "", "x", "other", "ü", "k", "more"])
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(-(2**65), 2**65), st.floats(), st.text(max_size=6)
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=5)),
    max_leaves=12,
)
FITTING = st.fixed_dictionaries(
    {"i": st.integers(-(2**63), 2**63 - 1)},
    optional={
        "n": st.floats(allow_nan=False, allow_infinity=False),
        "s": st.text(),
        "b": st.booleans(),
        "any": TREES,
        "l": st.lists(st.integers(-5, 5)),
        "ll": st.lists(st.lists(st.text(max_size=3), max_size=3), max_size=3),
        "m": st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        "o": st.fixed_dictionaries({"x": st.integers(0, 9), "other": TREES}, optional={"ü": TREES}),
        "": st.lists(st.dictionaries(st.just("k"), st.booleans())),
    },
)


@st.composite
def written(draw: st.DrawFn) -> bytes:
    tree = draw(st.one_of(FITTING, TREES, st.dictionaries(NAMES, TREES, max_size=6)))
    text = json.dumps(tree, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        return HEAD + data
    at, more = (
        draw(st.integers(0, len(data))),
        draw(st.sampled_from([b"", b"\\", b'"', b",", b"}", b"\xff", b"0", b"e"])),
    )
    return HEAD + data[:at] + more + data[at + draw(st.integers(0, 2)) :]


TRIES = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@TRIES
@given(st.lists(st.one_of(written(), st.none(), st.binary(max_size=12)), max_size=10))
def test_whatever_comes_is_read_as_python_reads_it(values: list[bytes | None]) -> None:
    check(values)


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@settings(TRIES, max_examples=10_000)
@given(st.lists(st.one_of(written(), st.none(), st.binary(max_size=12)), max_size=10))
def test_whatever_comes_in_a_long_run_is_read_as_python_reads_it(values: list[bytes | None]) -> None:
    check(values)


@pytest.mark.parametrize(
    "text",
    [
        '{"i": 1, "i": 2}',
        '{"i": 9223372036854775807, "n": 123456789012345678901234567890}',
        '{"i": -9223372036854775808, "n": -0, "any": -0}',
        '{"i": 9223372036854775808}',
        '{"i": -0, "n": -0.0, "any": -0.0}',
        '{"i": 1e3, "n": 1E-3, "any": 1e16}',
        '{"i": 01}',
        '{"i": 1.}',
        '{"i": .5}',
        '{"i": +1}',
        '{"i": 1, "n": 1e400}',
        '{"i": 1, "n": 1' + "0" * 400 + "}",
        '{"i": 1, "n": 0.1e-400}',
        '{"i": 1, "n": 0.' + "1" * 100 + "}",
        '{"i": 1, "n": 9007199254740993}',
        '{"i": 1, "n": 2.2250738585072011e-308}',
        '{"i": 1, "s": "\\ud83d\\ude00\\u00e9\\n\\/"}',
        '{"i": 1, "s": "\\ud83d"}',
        '{"i": 1, "s": "\\x"}',
        '{"i": 1, "s": "a\tb"}',
        '{"i": 1, "any": "\\u0000"}',
        '{"\\u0069": 1}',
        '{"i": 1, "any": {"a": [1.0, "é\\u0001\\ud83d\\ude00\x7f", {"b": null, "c": true}], "d": {}, "e": []}}',
        '{"i": 1, "any": {"a": 1, "a": 2}}',
        '{"i": 1, "more": {"a": NaN}}',
        '{"i": 1, "m": {"a": 1, "a": 2}}',
        '{"i": 1, "m": {' + ",".join(f'"{n}": {n}' for n in range(100)) + "}}",
        '{"i": 1, "any": ' + "[" * 300 + "]" * 300 + "}",
        '{"i": 1, "more": ' + "[" * 100_000,
        '{"i": 1} {"i": 2}',
        '{"i": 1,}',
        '{"i": 1, "l": [1,]}',
        '{"i" 1}',
        "  \n{ }",
        "\ufeff{}",
        "",
        "nul",
        '{"i": tru}',
        '{"i": 1, "b": falsey}',
    ],
)
def test_the_odd_corners_of_json_are_read_as_python_reads_them(text: str) -> None:
    check([HEAD + b'{"i": 5, "s": "before"}', HEAD + text.encode(), HEAD + b'{"i": 6, "l": [1]}'])


def test_every_cut_of_a_value_is_refused_and_leaves_nothing_behind() -> None:
    whole = HEAD + '{"i":1,"l":[1,2],"o":{"x":1,"other":[{}],"ü":"é"},"m":{"a":1.5},"":[{"k":true}]}'.encode()
    check([part for end in range(len(whole) + 1) for part in (whole[:end], whole)])


def test_little_is_left_to_python() -> None:
    values = [HEAD + json.dumps({"i": n, "n": n / 7, "s": f"é{n}", "any": {"a": [n]}}).encode() for n in range(1_000)]
    assert FAST._decoder.decode(pa.array(values))[1] == []


@pytest.mark.parametrize(
    "schema", [{"type": "integer"}, {"type": "string"}, {}, {"type": "array", "items": {"type": "string"}}]
)
def test_values_that_are_no_objects_are_read_alike(schema: Any) -> None:
    fast, slow = columns(schema, compiled), columns(schema, json_values_pure)
    check([HEAD + text for text in (b"1", b'"a"', b"null", b" [] ", b'["a",null]', b"{}", b"", b"1 2")], fast, slow)


def test_the_kernel_has_the_same_numbers() -> None:
    source = (Path(json_steps.__file__).parent / "json_values.pyx").read_text()
    for each in json_steps.JsonStep:
        assert f"    STEP_{each.name} = {each.value}\n" in source
