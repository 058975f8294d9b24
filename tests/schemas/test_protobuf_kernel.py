"""Both forms of the kernel that decodes Protobuf, against protobuf's own runtime and against hostile bytes."""

from __future__ import annotations

import importlib
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.kernel import protobuf_steps
from ottla.kernel.avro_steps import Fault
from ottla.registry.protobuf.format import parse_protobuf
from ottla.schemas.protobuf_columns import chosen, columns_of
from ottla.schemas.registered import PROTOBUF, Registered
from tests.schemas.protobuf_oracle import by_library

HEAD = b"\x00\x00\x00\x00\x07\x00"
FIELDS = """  F double a = 1; F float b = 2; F int64 c = 3; F uint64 d = 4; F int32 e = 5; F fixed64 f = 6;
  F fixed32 g = 7;
  F bool h = 8; F string i = 9; F Inner j = 10; F bytes k = 11; F uint32 l = 12; F Colour m = 13; F sfixed32 n = 14;
  F sfixed64 o = 15; F sint32 p = 16; F sint64 q = 17; F google.protobuf.Timestamp r = 18;
  F google.protobuf.StringValue s = 19; F google.protobuf.UInt64Value t = 2000;"""
HAS = """ oneof one { string oa = 61; Inner ob = 62; Colour oc = 63; sint32 od = 64; }
  map<string, Inner> x = 31; map<int32, Colour> y = 32; map<bool, sint64> z = 33; map<uint64, string> w = 34; """
REST = """ message Inner { repeated Leaf leaves = 1; optional int32 n = 2; map<string, double> m = 3; }
  message Leaf { optional string a = 1; optional bool b = 2; } enum Colour { RED = 0; GREEN = 1; ODD = -7; }"""
IMPORTS = 'import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";'


def text_of(syntax: str) -> str:
    plain = FIELDS.replace("F ", "optional " if syntax == "proto2" else "")
    many = "".join(
        f"repeated {line.strip().replace('F ', '').rpartition(' = ')[0]}s = {101 + place};"
        for place, line in enumerate(FIELDS.split(";")[:-1])
    ).replace("repeated F", "repeated")
    return f'syntax = "{syntax}"; {IMPORTS} message M {{ {plain} {many} {HAS} }} {REST}'


def registered(text: str) -> Registered:
    return Registered(7, PROTOBUF, parse_protobuf(text, (), is_new=True).serialised())


SCHEMAS = {syntax: chosen(registered(text_of(syntax)), None)[0] for syntax in ("proto2", "proto3")}


@pytest.fixture(params=["compiled", "pure"], scope="module")
def kernel(request: pytest.FixtureRequest) -> Any:
    if request.param == "pure":
        return importlib.import_module("ottla.kernel.protobuf_pure")
    try:
        return importlib.import_module("ottla.kernel._protobuf")
    except ImportError:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")


def decoded(kernel: Any, descriptor: Any, *values: bytes) -> tuple[list[Any], dict[int, int]]:
    decoder = kernel.ProtobufDecoder(*columns_of(descriptor))
    rows, bad = decoder.decode(pa.array([HEAD + value for value in values], pa.binary()), {7: (0,)})
    rows.validate(full=True)
    return _numbers(rows), {each.row: each.fault for each in bad}


def _numbers(array: Any) -> list[Any]:
    """Times as numbers: Python's own end at the year 9999."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_numbers(array.field(place)) for place in range(kind.num_fields)]
        names = [kind.field(place).name for place in range(kind.num_fields)]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        items = list(zip(_numbers(array.keys), _numbers(array.items), strict=True))
    elif pa.types.is_list(kind):
        items = _numbers(array.values)
    elif pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    else:
        return list(array.to_pylist())
    ends = array.offsets.to_pylist()
    return [items[ends[row] : ends[row + 1]] for row in range(len(array))]


def same(value: Any) -> Any:
    """Comparable: maps have no order, and no number is equal to what is none."""
    if isinstance(value, dict):
        return {name: same(part) for name, part in value.items()}
    if isinstance(value, list):
        items = [same(item) for item in value]
        return sorted(items, key=repr) if items and isinstance(items[0], tuple) else items
    if isinstance(value, tuple):
        return tuple(same(part) for part in value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def check(kernel: Any, descriptor: Any, *values: bytes) -> None:
    rows, bad = decoded(kernel, descriptor, *values)
    for place, value in enumerate(values):
        if bad.get(place) == Fault.BAD_TEXT and descriptor is SCHEMAS["proto2"]:
            continue  # there a text may be anything, to the runtime: columns of text cannot
        expected = by_library(descriptor, value)
        if isinstance(expected, Exception):
            assert place in bad and rows[place] is None, (value.hex(), expected)
        else:
            assert place not in bad, (value.hex(), Fault(bad[place]))
            assert same(rows[place]) == same(expected), value.hex()


# --- bytes that look like messages


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


NUMBERS = st.sampled_from([*range(1, 20), 2000, *range(101, 121), *range(31, 35), *range(61, 65), 99, 1, 2, 3])
RAW = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1), st.sampled_from([2**31, 2**32, 2**63, 2**64 - 7]))


def wired(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    contents = st.one_of(
        inner, st.binary(max_size=8), st.text(max_size=4).map(str.encode), st.lists(RAW.map(varint)).map(b"".join)
    )
    number = NUMBERS
    one = st.one_of(
        st.tuples(number, RAW).map(lambda its: varint(its[0] << 3) + varint(its[1])),
        st.tuples(number, st.binary(min_size=8, max_size=8)).map(lambda its: varint(its[0] << 3 | 1) + its[1]),
        st.tuples(number, contents).map(lambda its: varint(its[0] << 3 | 2) + varint(len(its[1])) + its[1]),
        st.tuples(number, inner).map(lambda its: varint(its[0] << 3 | 3) + its[1] + varint(its[0] << 3 | 4)),
        st.tuples(number, st.binary(min_size=4, max_size=4)).map(lambda its: varint(its[0] << 3 | 5) + its[1]),
    )
    return st.lists(one, max_size=6).map(b"".join)


MESSAGES = st.recursive(st.just(b""), wired, max_leaves=6)
MUTATED = st.tuples(MESSAGES, st.integers(0, 64), st.integers(0, 255), st.booleans()).map(
    lambda its: its[0][: its[1]] + (bytes([its[2]]) if its[3] else b"") + its[0][its[1] + 1 :]
)
TRIES = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@TRIES
@given(values=st.lists(st.one_of(MESSAGES, MUTATED, st.binary(max_size=24)), min_size=1, max_size=12))
def test_whatever_comes_is_read_as_protobufs_own_runtime_does(kernel: Any, syntax: str, values: list[bytes]) -> None:
    check(kernel, SCHEMAS[syntax], *values)


@pytest.mark.slow
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.timeout(3_000)
@settings(TRIES, max_examples=4_000)
@given(values=st.lists(st.one_of(MESSAGES, MUTATED, st.binary(max_size=24)), min_size=1, max_size=12))
def test_whatever_comes_in_a_long_run_is_read_as_protobufs_own_runtime_does(
    kernel: Any, syntax: str, values: list[bytes]
) -> None:
    check(kernel, SCHEMAS[syntax], *values)


# --- bytes that mean harm


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"\x08" + b"\xff" * 11, id="a number without an end"),
        pytest.param(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", id="a number of seventy bits"),
        pytest.param(b"\x4a\xff\xff\xff\xff\x07", id="a length of two gigabytes"),
        pytest.param(b"\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", id="a length of minus one"),
        pytest.param(b"\x4a\x05abc", id="a length past the end"),
        pytest.param(b"\x0b" * 200 + b"\x0c" * 200, id="groups within groups"),
        pytest.param(b"\x0b" * 100_000, id="groups that never end"),
        pytest.param(b"\x0c", id="the end of no group"),
        pytest.param(b"\x53\x5c", id="the end of another group"),
        pytest.param(b"\x00\x01", id="no number"),
        pytest.param(b"\x0e", id="a wire type that is none"),
        pytest.param(b"\x80\x80\x80\x80\x80\x00", id="a tag of six bytes"),
        pytest.param(b"\x09\x01", id="eight bytes that are one"),
        pytest.param(b"\xb2\x06\x03abc", id="packed fixed numbers that are cut"),
        pytest.param(b"\x4a\x02\xc0\x80", id="no text"),
    ],
)
def test_hostile_bytes_are_bad_values_and_no_more(kernel: Any, value: bytes) -> None:
    good = b"\x28\x05"
    for descriptor in SCHEMAS.values():
        check(kernel, descriptor, good, value, good)


def test_every_cut_of_a_message_is_read_or_refused_as_protobuf_does(kernel: Any) -> None:
    whole = bytes.fromhex(
        "09000000000000f03f1803220528014a0161520a0a030a017a10051a020a019a0101619a0600fa010a0a016112060a00100f"
    )
    for descriptor in SCHEMAS.values():
        check(kernel, descriptor, *(whole[:end] for end in range(len(whole) + 1)))


def test_a_large_map_with_the_same_keys_again_has_the_last_values(kernel: Any) -> None:
    def pair(key: int, value: int) -> bytes:
        inner = b"\x08" + varint(key) + b"\x10" + varint(value)
        return varint(33 << 3 | 2) + varint(len(inner)) + inner

    of_numbers = chosen(registered('syntax = "proto3"; message M { map<int32, int32> m = 33; }'), None)[0]
    value = b"".join(pair(key % 500, key) for key in range(1_500))
    rows, bad = decoded(kernel, of_numbers, value)
    assert not bad and dict(rows[0]["m"]) == {key: key + 1_000 for key in range(500)}


def test_no_bad_value_leaves_anything_in_the_columns_of_its_neighbours(kernel: Any) -> None:
    inner = b"\x0a\x03\x0a\x01z"
    good = b"\x52" + bytes([len(inner)]) + inner + b"\x9a\x06\x01\x05"
    rows, bad = decoded(kernel, SCHEMAS["proto3"], good, good + b"\x52\x7f", good, good + b"\x4a\x01\xff", good)
    assert sorted(bad) == [1, 3] and rows[0] == rows[2] == rows[4]


def test_values_of_other_messages_and_of_other_ids_are_told_apart(kernel: Any) -> None:
    decoder = kernel.ProtobufDecoder(*columns_of(SCHEMAS["proto3"]))
    framed = [
        b"\0\0\0\0\x07\x02\x02",
        b"\0\0\0\0\x07\x02\x00",
        b"\0\0\0\0\x08\x00",
        b"\0\0\0\0\x09\x04\x02\x06",
        b"\0\0",
        None,
    ]
    rows, bad = decoder.decode(pa.array(framed, pa.binary()), {7: (0,), 9: (1, 3)})
    assert [(each.row, each.fault, each.which) for each in bad] == [
        (0, Fault.OTHER_MESSAGE, 0),
        (2, Fault.NO_PROGRAM, 8),
        (4, Fault.NOT_FRAMED, 0),
    ]
    assert [row.is_valid for row in rows] == [False, True, False, True, False, False]


def test_both_forms_have_the_same_numbers() -> None:
    source = (Path(protobuf_steps.__file__).parent / "protobuf_types.pxi").read_text()
    for prefix, kinds in (("TYPE_", protobuf_steps.Type), ("LABEL_", protobuf_steps.Label)):
        for each in kinds:
            assert f"    {prefix}{each.name} = {each.value}\n" in source
