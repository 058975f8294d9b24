"""Columns to Avro: fastavro reads what was written, and a row that does not fit is named."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from types import ModuleType
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from ottla.avro.parse import parse
from ottla.common.errors import OttlaError
from ottla.common.schemas import InvalidSchema
from ottla.schemas.avro.columns import columns_of
from ottla.schemas.avro.resolving import resolve
from ottla.schemas.avro.writing import record_name, schema_of, written
from tests.registry.random_avro import SchemaMaker
from tests.schemas.random_values import ValueMaker
from tests.schemas.test_avro_columns import HEAD, field, record

ODD = record(
    field("id", "long"),
    field("name", ["null", "string"]),
    field("either", ["int", "null", "string"]),
    field("colour", {"type": "enum", "name": "C", "symbols": ["RED", "GREEN"]}),
    field("hash", {"type": "fixed", "name": "H", "size": 2}),
    field("price", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    field("fixed_price", {"type": "fixed", "name": "P", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 1}
    ),
    field("at", {"type": "long", "logicalType": "timestamp-millis"}),
    field("day", {"type": "int", "logicalType": "date"}),
    field("tags", {"type": "map", "values": ["null", "double"]}),
    field("lines", {"type": "array", "items": record(field("n", "int"), field("ok", "boolean")) | {"name": "L"}}),
    field("more", "string", default="as ever"),
)  # fmt: skip


def encoded(schema: Any, rows: list[Any], leave_out: tuple[str, ...] = ()) -> list[bytes | None]:
    parsed = parse(json.dumps(schema))
    names = [its.name for its in parsed.fields if its.name not in leave_out]
    made = written(parsed, names)
    return list(made.encode(pa.array(rows, made.type), HEAD).to_pylist())


def read(schema: Any, data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(json.loads(json.dumps(schema))), None)


@pytest.mark.usefixtures("kernel")
def test_every_type_is_written_as_fastavro_reads_it() -> None:
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=datetime.UTC)
    value = {
        "id": -(2**63), "name": None, "colour": "GREEN", "hash": b"\x01\x02", "price": decimal.Decimal("-1234567.89"),
        "fixed_price": decimal.Decimal("12.3"), "at": moment, "day": datetime.date(1999, 1, 2),
        "tags": [("a", 1.5), ("b", None)], "lines": [{"n": 1, "ok": True}, {"n": -2, "ok": False}],
    }  # fmt: skip
    rows = [value | {"either": {"member0": None, "member1": "x"}}, None, value | {"either": None, "name": "Ada"}]
    first, none, last = encoded(ODD, rows, leave_out=("more",))
    assert none is None and first is not None and last is not None and first.startswith(HEAD)
    expected = value | {"tags": dict(value["tags"]), "more": "as ever"}  # type: ignore[call-overload]
    assert read(ODD, first) == expected | {"either": "x"}
    assert read(ODD, last) == expected | {"either": None, "name": "Ada"}


def test_what_was_decoded_is_written_as_it_came(kernel: ModuleType) -> None:
    count = 0
    for seed in range(120):
        tree = {"type": "record", "name": "Top", "fields": [field("x", SchemaMaker(seed).schema())]}
        try:
            schema = parse(json.dumps(tree))
            columns = columns_of(schema)
            values = [HEAD + ValueMaker(seed * 100 + number).data(schema) for number in range(10)]
        except (InvalidSchema, OttlaError, RecursionError):
            continue
        decoder = kernel.AvroDecoder(columns.shapes, columns.type)
        program = resolve(schema, schema, columns).program
        rows, bad = decoder.decode(pa.array(values, pa.binary()), {7: program})
        assert not bad
        again = written(schema, ["x"]).encode(rows, HEAD)
        # Blocks of arrays may have been cut otherwise: read once more, they are the same.
        assert str(decoder.decode(again, {7: program})[0].to_pylist()) == str(rows.to_pylist()), tree
        count += 1
    assert count > 50


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("string", None, "'a' is null"),
        ({"type": "enum", "name": "E", "symbols": ["X"]}, "Y", "symbol"),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab", "length"),
        (
            {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 9, "scale": 0},
            decimal.Decimal(1000),
            "number",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_told_of(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(OttlaError, match=words):
        encoded(record(field("a", kind)), [{"a": value}])


def test_columns_that_do_not_fit_are_told_of_before_anything_is_written() -> None:
    schema = parse(json.dumps(record(field("a", "int"), field("b", "int", default=1))))
    with pytest.raises(OttlaError, match="no field 'c'"):
        written(schema, ["a", "c"])
    with pytest.raises(OttlaError, match="needs a column 'a'"):
        written(schema, ["b"])


def test_a_schema_follows_from_columns() -> None:
    kind = pa.struct(
        [
            ("id", pa.int16()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("price", pa.decimal128(8, 2)),
            ("lines", pa.list_(pa.field("element", pa.struct([("sku", pa.string())])))),
            ("tags", pa.map_(pa.string(), pa.float64())),
        ]
    )
    schema = schema_of(kind, record_name("orders.clean-1"))
    assert schema["name"] == "orders_clean_1"
    parsed = columns_of(parse(json.dumps(schema))).type
    assert parsed.field("id").type == pa.int32()
    assert [parsed.field(name).type for name in ("at", "price", "tags")] == [
        kind.field(name).type for name in ("at", "price", "tags")
    ]
    with pytest.raises(OttlaError, match="rename"):
        schema_of(pa.struct([("a b", pa.int32())]), "x")
    with pytest.raises(OttlaError, match="no type"):
        schema_of(pa.struct([("t", pa.duration("us"))]), "x")


def test_slices_are_written_as_what_they_are(kernel: ModuleType) -> None:
    schema = record(field("a", {"type": "array", "items": "string"}), field("m", {"type": "map", "values": "int"}))
    rows = [{"a": [str(n), "x"], "m": [(f"k{n}", n)]} for n in range(10)]
    parsed = parse(json.dumps(schema))
    made = written(parsed, ["a", "m"])
    whole = made.encode(pa.array(rows, made.type), HEAD).to_pylist()
    assert made.encode(pa.array(rows, made.type)[3:7], HEAD).to_pylist() == whole[3:7]
