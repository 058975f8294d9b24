"""Both forms of the kernel that writes Protobuf: protobuf's own runtime reads what they write."""

from __future__ import annotations

import importlib
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ottla.schemas.protobuf_rows as protobuf_rows
from ottla.common.errors import OttlaError
from ottla.schemas.messages import class_of
from ottla.schemas.protobuf_columns import chosen, columns_of
from ottla.schemas.protobuf_rows import ProtobufRows
from tests.schemas.protobuf_oracle import by_library
from tests.schemas.test_protobuf_kernel import HEAD, MESSAGES, SCHEMAS, TRIES, registered, same, text_of

PROTO2 = """syntax = "proto2"; message M { required int32 a = 1; optional group G = 2 { optional string s = 1; }
 repeated int32 packed = 3 [packed = true]; repeated int32 loose = 4; optional uint32 u = 5; optional uint64 w = 6;
 optional E e = 7; } message Other { optional M m = 1; } enum E { X = 0; Y = 5; }"""


@pytest.fixture(params=["compiled", "pure"], scope="module")
def kernels(request: pytest.FixtureRequest) -> Any:
    prefix, suffix = ("_", "") if request.param == "compiled" else ("", "_pure")
    try:
        return tuple(
            importlib.import_module(f"ottla.kernel.{prefix}{name}{suffix}") for name in ("protobuf_encode", "protobuf")
        )
    except ImportError:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")


def rows_for(kernels: Any, text: str, names: list[str] | None = None, message: str | None = None) -> ProtobufRows:
    schema = registered(text)
    every = [field.name for field in chosen(schema, message)[0].fields]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protobuf_rows, "ProtobufEncoder", kernels[0].ProtobufEncoder)
        return ProtobufRows(schema, message, every if names is None else names)


def runtime_reads(encoded: bytes, descriptor: Any) -> Any:
    assert encoded.startswith(HEAD)
    return class_of(descriptor).FromString(encoded[len(HEAD) :])


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@settings(TRIES, max_examples=100)
@given(values=st.lists(MESSAGES, min_size=1, max_size=8))
def test_what_is_read_from_any_message_is_written_as_it(kernels: Any, syntax: str, values: list[bytes]) -> None:
    descriptor = SCHEMAS[syntax]
    good = [value for value in values if not isinstance(by_library(descriptor, value), Exception)]
    columns = columns_of(descriptor)
    decoder = kernels[1].ProtobufDecoder(*columns)
    rows, bad = decoder.decode(pa.array([HEAD + value for value in good], pa.binary()), {7: (0,)})
    written = rows_for(kernels, text_of(syntax))
    encoded = written.encode(rows)
    for place, value in enumerate(good):
        if place in {each.row for each in bad}:
            continue  # text that is none, in proto2
        data = encoded[place].as_py()[len(HEAD) :]
        again = by_library(descriptor, data)
        expected = by_library(descriptor, value)
        # A moment that is finer than microseconds, or too far away, is not what it was.
        if expected["r"] is None and not expected["rs"]:
            assert same(again) == same(expected)


def test_rows_in_the_middle_of_arrays_are_written_as_they_are(kernels: Any) -> None:
    written = rows_for(kernels, PROTO2, ["packed", "a", "g"])
    rows = [{"packed": [number, -1], "a": number, "g": {"s": "x" * 200 * number}} for number in range(6)]
    encoded = written.encode(pa.array([*rows[:3], None, *rows[3:]], written.type).slice(2, 4))
    descriptor = chosen(registered(PROTO2), None)[0]
    found = [None if value is None else runtime_reads(value, descriptor) for value in encoded.to_pylist()]
    assert [None if each is None else (each.a, list(each.packed), len(each.g.s)) for each in found] == [
        (2, [2, -1], 400), None, (3, [3, -1], 600), (4, [4, -1], 800)
    ]  # fmt: skip


def test_another_message_of_the_file_is_written_with_its_place(kernels: Any) -> None:
    written = rows_for(kernels, PROTO2, message="Other")
    row = {"m": {"a": 1, "g": None, "packed": None, "loose": [], "u": None, "w": None, "e": "Y"}}
    (value,) = written.encode(pa.array([row], written.type)).to_pylist()
    assert value == b"\x00\x00\x00\x00\x07\x02\x02" + b"\x0a\x04\x08\x01\x38\x05"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"a": None}, "'a' is null, and the schema does not allow that"),
        ({"a": 1, "u": 2**32}, "'u' has a number that does not fit"),
        ({"a": 1, "u": -1}, "'u' has a number that does not fit"),
        ({"a": 1, "w": Decimal(2**64)}, "'w' has a number that does not fit"),
        ({"a": 1, "w": Decimal(-1)}, "'w' has a number that does not fit"),
        ({"a": 1, "e": "Z"}, "'e' is no symbol of its enum"),
        ({"a": 1, "e": "6"}, "'e' is no symbol of its enum"),
        ({"a": 1, "packed": [1, None]}, "'packed' has an item that is null"),
        ({"a": 1, "loose": [None]}, "'loose' has an item that is null"),
    ],
)
def test_a_row_that_does_not_fit_is_told_with_its_column(kernels: Any, row: dict[str, Any], words: str) -> None:
    written = rows_for(kernels, PROTO2)
    with pytest.raises(OttlaError, match=words):
        written.encode(pa.array([row], written.type))


def test_two_of_a_oneof_and_nothing_in_a_map_are_refused(kernels: Any) -> None:
    text = 'syntax = "proto3"; message M { oneof o { int32 a = 1; string b = 2; } map<string, int32> m = 3; E e = 4; }'
    text += " enum E { X = 0; }"
    written = rows_for(kernels, text)
    for row, words in (
        ({"a": 0, "b": ""}, "'b' is not null, and neither is another column of the same oneof"),
        ({"m": [("k", None)]}, "'m' has an item that is null"),
    ):
        with pytest.raises(OttlaError, match=words):
            written.encode(pa.array([row], written.type))
    (value,) = written.encode(pa.array([{"a": 0, "m": [("", 0)], "e": "-2147483648"}], written.type)).to_pylist()
    assert value == HEAD + b"\x08\x00\x1a\x04\x0a\x00\x10\x00\x20\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01"


def test_columns_that_the_message_does_not_have_or_needs_are_told_of(kernels: Any) -> None:
    with pytest.raises(OttlaError, match="has no field 'b': it has a, g"):
        rows_for(kernels, PROTO2, ["a", "b"])
    with pytest.raises(OttlaError, match="needs a column 'a'"):
        rows_for(kernels, PROTO2, ["u"])
