"""Avro to columns: the same values as fastavro's, whatever the two schemas are; and bad bytes are told of."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import random
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from ottla.avro.compatibility import differences
from ottla.avro.parse import parse
from ottla.common.errors import OttlaError
from ottla.common.schemas import InvalidSchema
from ottla.kernel import avro_steps
from ottla.kernel.avro_steps import Bad, Fault
from ottla.schemas.avro.columns import columns_of
from ottla.schemas.avro.resolving import Unreadable, resolve
from tests.registry.random_avro import SchemaMaker, _places
from tests.schemas.random_values import ValueMaker, same, zigzag

HEAD = b"\x00\x00\x00\x00\x07"


def text(schema: Any) -> str:
    return schema if isinstance(schema, str) and schema.startswith(("{", "[", '"')) else json.dumps(schema)


def decoded(kernel: ModuleType, writer: Any, reader: Any, values: Sequence[bytes | None]) -> tuple[Any, list[Bad]]:
    wanted = parse(text(reader))
    columns = columns_of(wanted)
    program = resolve(parse(text(writer)), wanted, columns).program
    array = pa.array([None if value is None else HEAD + value for value in values], pa.binary())
    found, bad = kernel.AvroDecoder(columns.shapes, columns.type).decode(array, {7: program})
    found.validate(full=True)
    return found, bad


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def written(schema: Any, *values: Any) -> list[bytes]:
    found = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(text(schema))), value)
        found.append(out.getvalue())
    return found


def compare(kernel: ModuleType, seeds: range) -> int:
    """How many values were compared with fastavro's."""
    count = 0
    for seed in seeds:
        reader_tree, writer_tree = SchemaMaker(seed).pair()
        if [] in list(_places(reader_tree)):
            continue  # nothing is a value of an empty union, but fastavro reads some
        try:
            reader, writer = parse(json.dumps(reader_tree)), parse(json.dumps(writer_tree))
            columns = columns_of(reader)
            program = resolve(writer, reader, columns).program
            maker = ValueMaker(seed)
            values = [maker.data(writer) for _ in range(5)]
        except (InvalidSchema, OttlaError, Unreadable, RecursionError):
            continue
        array = pa.array([HEAD + value for value in values], pa.binary())
        found, bad = kernel.AvroDecoder(columns.shapes, columns.type).decode(array, {7: program})
        found.validate(full=True)
        refused = {each.row for each in bad}
        for row, (value, ours) in enumerate(zip(values, found.to_pylist(), strict=True)):
            try:
                theirs = fastavro.schemaless_reader(
                    io.BytesIO(value), fastavro.parse_schema(writer_tree), fastavro.parse_schema(reader_tree)
                )
            except Exception:
                continue  # fastavro refuses what Java takes, such as a record with another name
            told = f"seed {seed}: {json.dumps(reader_tree)} reads {json.dumps(writer_tree)}, {value!r}"
            if row in refused:  # fastavro reads a fixed as an enum of its name; to Java's rules they do not fit
                assert differences(reader, writer), told
                continue
            assert same(reader, ours if reader.is_record else ours["value"], theirs), f"{told}: {ours} {theirs}"
            count += 1
    return count


def test_random_schemas_are_read_as_fastavro_reads_them(kernel: ModuleType) -> None:
    assert compare(kernel, range(400)) > 400


@pytest.mark.slow
def test_many_random_schemas_are_read_as_fastavro_reads_them(kernel: ModuleType) -> None:
    assert compare(kernel, range(1_000, 12_000)) > 10_000


def damaged(values: list[bytes], random_: random.Random) -> list[bytes | None]:
    found: list[bytes | None] = []
    for value in values:
        data = bytearray(value)
        for _ in range(random_.randrange(3)):
            choice = random_.random()
            if data and choice < 0.5:
                data[random_.randrange(len(data))] = random_.getrandbits(8)
            elif data and choice < 0.8:
                del data[random_.randrange(len(data)) :]
            else:
                data += random_.randbytes(2)
        found.append(bytes(data))
    return [*found, None]


def agree(seeds: range) -> int:
    compiled = pytest.importorskip("ottla.kernel._avro")
    import ottla.kernel.avro_pure as pure

    bad_count = 0
    for seed in seeds:
        reader_tree, writer_tree = SchemaMaker(seed).pair()
        maker, random_ = ValueMaker(seed), random.Random(seed)
        try:
            reader, writer = parse(json.dumps(reader_tree)), parse(json.dumps(writer_tree))
            columns = columns_of(reader)
            values = damaged([maker.data(writer) for _ in range(8)], random_)
            steps = resolve(writer, reader, columns).program
        except (InvalidSchema, OttlaError, Unreadable, RecursionError):
            continue
        array = pa.array([None if value is None else HEAD + value for value in values], pa.binary())
        twin = pure.AvroProgram(*_PARTS[id(steps)]) if id(steps) in _PARTS else None
        assert twin is not None
        ours = compiled.AvroDecoder(columns.shapes, columns.type).decode(array, {7: steps})
        theirs = pure.AvroDecoder(columns.shapes, columns.type).decode(array, {7: twin})
        ours[0].validate(full=True)
        told = f"seed {seed}: {json.dumps(reader_tree)} reads {json.dumps(writer_tree)}, {values}"
        assert [tuple(each) for each in ours[1]] == [tuple(each) for each in theirs[1]], told
        assert str(ours[0].to_pylist()) == str(theirs[0].to_pylist()), told
        bad_count += len(ours[1])
    return bad_count


_PARTS: dict[int, Any] = {}


@pytest.fixture
def both_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that remember what they were made of."""
    import ottla.schemas.avro.resolving as resolving

    compiled = pytest.importorskip("ottla.kernel._avro")
    kept: list[Any] = []

    def made(*parts: Any) -> Any:
        program = compiled.AvroProgram(*parts)
        kept.append(program)
        _PARTS[id(program)] = parts
        return program

    monkeypatch.setattr(resolving, "AvroProgram", made)


@pytest.mark.usefixtures("both_programs")
def test_the_twins_agree_on_damaged_bytes() -> None:
    assert agree(range(600)) > 300


@pytest.mark.slow
@pytest.mark.usefixtures("both_programs")
def test_the_twins_agree_on_many_damaged_bytes() -> None:
    assert agree(range(20_000, 40_000)) > 10_000


def test_a_newer_writer_is_read_by_the_readers_schema(kernel: ModuleType) -> None:
    reader = record(field("id", "long"), field("name", ["null", "string"], default=None), field("n", "int", default=-3))
    writer = record(field("extra", {"type": "array", "items": "string"}), field("name", "string"), field("id", "int"))
    found, bad = decoded(kernel, writer, reader, written(writer, {"extra": ["x", "y"], "name": "Ada", "id": 5}))
    assert (found.to_pylist(), bad) == ([{"id": 5, "name": "Ada", "n": -3}], [])


def test_logical_types_are_those_of_spark(kernel: ModuleType) -> None:
    kinds = {
        "day": ({"type": "int", "logicalType": "date"}, pa.date32()),
        "ms": ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("us", tz="UTC")),
        "us": ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", tz="UTC")),
        "local": ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("us")),
        "price": ({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}, pa.decimal128(20, 2)),
        "time": ({"type": "int", "logicalType": "time-millis"}, pa.int32()),
    }
    schema = record(*(field(name, kind) for name, (kind, _) in kinds.items()))
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.UTC)
    value = {
        "day": datetime.date(1960, 2, 29),
        "ms": moment,
        "us": moment,
        "local": moment.replace(tzinfo=None),
        "price": decimal.Decimal("-123456789012345678.90"),
        "time": datetime.time(0, 0, 1),
    }
    found, bad = decoded(kernel, schema, schema, written(schema, value))
    assert not bad
    assert [found.type.field(index).type for index in range(6)] == [arrow for _, arrow in kinds.values()]
    (row,) = found.to_pylist()
    assert row == value | {"time": 1000}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", Fault.TOO_SHORT),
        (b"\x04A", Fault.TOO_SHORT),
        (b"\x02A\x00\x00", Fault.LEFT_OVER),
        (b"\x02\xff\x00", Fault.BAD_TEXT),
        (b"\x02A\x0a", Fault.BAD_SYMBOL),
        (b"\x01A\x00", Fault.TOO_SHORT),
        (b"\xff" * 12, Fault.TOO_SHORT),
    ],
)
def test_bad_bytes_are_told_of_and_leave_nothing(kernel: ModuleType, data: bytes, fault: Fault) -> None:
    schema = record(field("name", "string"), field("colour", {"type": "enum", "name": "C", "symbols": ["RED"]}))
    good = written(schema, {"name": "Ada", "colour": "RED"})[0]
    found, bad = decoded(kernel, schema, schema, [good, data, None, good])
    assert found.to_pylist() == [{"name": "Ada", "colour": "RED"}, None, None, {"name": "Ada", "colour": "RED"}]
    assert [(each.row, each.fault) for each in bad] == [(1, fault)]


def test_arrays_that_claim_more_than_they_have_cost_nothing(kernel: ModuleType) -> None:
    nulls = record(field("a", {"type": "array", "items": "null"}))
    found, bad = decoded(kernel, nulls, nulls, [zigzag(2**40), zigzag(-(2**63)) + zigzag(0), zigzag(3) + b"\x00"])
    assert [each.fault for each in bad] == [Fault.TOO_MANY, Fault.TOO_SHORT]
    assert found.to_pylist()[2] == {"a": [None, None, None]}
    many = (zigzag(1_000) * 1_000) + b"\x00"
    found, bad = decoded(kernel, nulls, nulls, [many, zigzag(900) + b"\x00"])
    assert [(each.row, each.fault) for each in bad] == [(0, Fault.TOO_MANY)], "not in many pieces either"
    assert len(found.to_pylist()[1]["a"]) == 900


def test_a_default_may_have_many_items(kernel: ModuleType) -> None:
    many = list(range(3_000))
    reader = record(field("a", {"type": "array", "items": "int"}, default=many))
    found, bad = decoded(kernel, record(), reader, [b"", b""])
    assert not bad and found.to_pylist() == [{"a": many}] * 2


def test_a_writer_that_contains_itself_is_passed_over_up_to_a_depth(kernel: ModuleType) -> None:
    tree = {"type": "record", "name": "Tree", "fields": [field("left", ["null", "Tree"])]}
    writer = record(field("tree", tree), field("id", "int"))
    reader = record(field("id", "int"))
    deep = b"\x02" * 20 + b"\x00" + zigzag(9)
    found, bad = decoded(kernel, writer, reader, [deep, b"\x02" * 5_000 + b"\x00" + zigzag(9)])
    assert found.to_pylist() == [{"id": 9}, None]
    assert [each.fault for each in bad] == [Fault.TOO_DEEP]


def test_a_reader_that_contains_itself_has_no_columns() -> None:
    with pytest.raises(OttlaError, match="contains itself"):
        columns_of(parse(json.dumps({"type": "record", "name": "T", "fields": [field("next", ["null", "T"])]})))


def test_what_no_writer_value_can_be_is_said_before_any_value_is_read() -> None:
    reader = parse(json.dumps(record(field("id", "int"))))
    with pytest.raises(Unreadable, match="'id'"):
        resolve(parse(json.dumps(record(field("id", "string")))), reader, columns_of(reader))
    with pytest.raises(Unreadable, match="no default"):
        resolve(parse(json.dumps(record())), reader, columns_of(reader))


def test_the_branch_that_a_reader_lacks_makes_only_its_own_values_bad(kernel: ModuleType) -> None:
    writer, reader = record(field("a", ["null", "int", "string"])), record(field("a", ["null", "int"]))
    found, bad = decoded(kernel, writer, reader, written(writer, {"a": 4}, {"a": "x"}, {"a": None}))
    assert found.to_pylist() == [{"a": 4}, None, {"a": None}]
    assert [(each.row, each.fault) for each in bad] == [(1, Fault.REFUSED)]


def test_an_empty_array_is_read_whatever_its_items_would_be(kernel: ModuleType) -> None:
    writer = record(field("a", {"type": "array", "items": "string"}))
    reader = record(field("a", {"type": "array", "items": "int"}))
    found, bad = decoded(kernel, writer, reader, written(writer, {"a": []}, {"a": ["x"]}))
    assert found.to_pylist() == [{"a": []}, None]
    assert [(each.row, each.fault) for each in bad] == [(1, Fault.REFUSED)]


def test_several_writers_in_one_array_fill_the_same_columns(kernel: ModuleType) -> None:
    reader = parse(json.dumps(record(field("a", "long"))))
    columns = columns_of(reader)
    others = [record(field("a", "int")), record(field("b", "string"), field("a", "long"))]
    programs = {
        number: resolve(parse(json.dumps(other)), reader, columns).program for number, other in enumerate(others, 1)
    }
    values = [written(others[0], {"a": 1})[0], written(others[1], {"b": "x", "a": 2})[0]]
    framed = [b"\x00" + number.to_bytes(4, "big") + values[number - 1] for number in (1, 2, 2, 1)]
    array = pa.array([*framed, b"\x00\x00\x00\x00\x09x", b"text", None], pa.binary())
    assert kernel.schema_ids(array) == [1, 2, 9]
    # A part of a longer array, as whoever slices has it.
    found, bad = kernel.AvroDecoder(columns.shapes, columns.type).decode(array[1:], programs)
    assert found.to_pylist() == [{"a": 2}, {"a": 2}, {"a": 1}, None, None, None]
    assert [tuple(each) for each in bad] == [(3, Fault.NO_PROGRAM, 9), (4, Fault.NOT_FRAMED, 0)]


def test_both_forms_of_the_kernel_have_the_same_numbers() -> None:
    """The compiled one has them as constants of its own."""
    from pathlib import Path

    folder = Path(avro_steps.__file__).parent
    for file, prefix, kinds in (
        ("columns.pxi", "KIND_", avro_steps.Kind),
        ("avro.pyx", "STEP_", avro_steps.Step),
        ("columns.pxi", "", avro_steps.Fault),
        ("avro_encode.pyx", "WRITE_", avro_steps.Write),
    ):
        source = (folder / file).read_text()
        for each in kinds:
            assert f"    {prefix}{each.name} = {each.value}\n" in source
