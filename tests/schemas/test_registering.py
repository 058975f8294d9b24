"""Schemas that follow from columns are registered in each format, read back, and grow with the columns."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla.common.errors import OttlaError
from ottla.schemas.columns import decoder_for
from ottla.schemas.encoding import encoder_for, registered_for
from ottla.schemas.messages import message_classes
from ottla.schemas.registry import SchemaRegistry
from ottla.testing import Broker, Registry

COLUMNS = pa.struct(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("euro", pa.float64()),
        ("ratio", pa.float32()),
        ("is_paid", pa.bool_()),
        ("customer", pa.string()),
        ("raw", pa.binary()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("lines", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int32())]))),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("place", pa.struct([("x", pa.float64()), ("more", pa.struct([("deep", pa.bool_())]))])),
    ]
)
AT = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=datetime.UTC)
ROW: dict[str, Any] = {
    "id": 2**62 + 1, "small": -7, "euro": 1.5, "ratio": 0.5, "is_paid": False, "customer": "Grüß", "raw": b"\x00\xff",
    "at": AT, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": None}], "tags": [("a", "b")],
    "place": {"x": 2.0, "more": {"deep": True}},
}  # fmt: skip
NOTHING = dict.fromkeys(ROW)


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[Registry]:
    with Registry(broker.bootstrap_servers, topic="_registering", group="registering") as running:
        yield running


def there_and_back(
    where: SchemaRegistry, topic: str, rows: list[Any], kind: Any = COLUMNS
) -> tuple[list[Any], list[bytes]]:
    schema = registered_for(where, kind, topic)
    names = tuple(kind.field(place).name for place in range(kind.num_fields))
    encoder = encoder_for(where, schema, names)
    array = pa.array(rows, kind)
    values = encoder.encode(array if encoder.type is None else array.cast(encoder.type))
    decoded, reasons = decoder_for(where, where.for_topic(topic).schema()).decode(values)
    assert reasons.to_pylist() == [None] * len(rows)
    return decoded.to_pylist(), values.to_pylist()


def test_rows_are_written_as_protobuf_and_read_back_as_they_were(registry: Registry) -> None:
    where = SchemaRegistry(registry.url, format="PROTOBUF")
    rows, values = there_and_back(where, "proto", [ROW, NOTHING, None])
    assert rows[0] == ROW and rows[2] is None
    assert rows[1] == NOTHING | {"lines": [], "tags": []}, "Protobuf has no lists that are not there"
    message = message_classes(where.for_topic("proto").schema().text, {})[0]
    deserializer = ProtobufDeserializer(message, {"use.deprecated.format": False})
    read = deserializer(values[0], SerializationContext("proto", MessageField.VALUE))
    assert (read.id, read.customer, read.lines[1].HasField("n")) == (ROW["id"], "Grüß", False)


def test_rows_are_written_as_json_and_read_back(registry: Registry) -> None:
    where = SchemaRegistry(registry.url, format="JSON")
    rows, values = there_and_back(where, "json", [ROW, NOTHING, None])
    assert rows[0] == ROW | {"ratio": 0.5, "raw": "AP8=", "at": "2024-05-06T07:08:09.123456Z"}
    assert rows[1:] == [NOTHING, None]
    client = SchemaRegistryClient({"url": registry.url})
    text = client.get_latest_version("json-value").schema.schema_str
    read = JSONDeserializer(text, schema_registry_client=client)(
        values[0], SerializationContext("json", MessageField.VALUE)
    )
    assert read["customer"] == "Grüß" and read["place"] == {"x": 2.0, "more": {"deep": True}}


@pytest.mark.parametrize("format", ["AVRO", "JSON", "PROTOBUF"])
def test_a_column_more_is_accepted_by_the_level_that_a_registry_has_by_itself(registry: Registry, format: str) -> None:
    where, topic = SchemaRegistry(registry.url, format=format), f"grows-{format}"
    first = pa.struct([("b", pa.string()), ("place", pa.struct([("x", pa.int32())]))])
    _, old = there_and_back(where, topic, [{"b": "old", "place": {"x": 1}}], first)
    more = pa.struct(
        [("a", pa.int64()), ("b", pa.string()), ("place", pa.struct([("w", pa.string()), ("x", pa.int32())]))]
    )
    seen = registered_for(where, more, topic, registers=False)
    assert seen.id == 0
    rows, _ = there_and_back(where, topic, [{"a": 1, "b": "new", "place": {"w": "w", "x": 2}}], more)
    assert rows == [{"a": 1, "b": "new", "place": {"w": "w", "x": 2}}]
    decoded, reasons = decoder_for(where, where.for_topic(topic).schema()).decode(pa.array(old))
    assert reasons.to_pylist() == [None]
    assert decoded.to_pylist() == [{"a": None, "b": "old", "place": {"w": None, "x": 1}}]


def test_the_number_of_a_column_that_is_gone_is_never_given_again(registry: Registry) -> None:
    where = SchemaRegistry(registry.url, format="PROTOBUF")
    for names in (["a", "b"], ["a"], ["a", "c"]):
        schema = registered_for(where, pa.struct([(name, pa.int32()) for name in names]), "numbers")
    message = message_classes(schema.text, {})[0].DESCRIPTOR
    assert {field.name: field.number for field in message.fields} == {"a": 1, "c": 3}
    client = SchemaRegistryClient({"url": registry.url})
    assert "reserved 2" in client.get_latest_version("numbers-value").schema.schema_str


def test_numbers_that_somebody_has_reserved_are_passed_over(registry: Registry) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    text = 'syntax = "proto3"; message held { reserved 2 to 5, 19000 to max; optional int32 a = 1; }'
    client.register_schema("held-value", Schema(text, "PROTOBUF"))
    kind = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    schema = registered_for(SchemaRegistry(registry.url, format="PROTOBUF"), kind, "held")
    assert message_classes(schema.text, {})[0].DESCRIPTOR.fields_by_name["b"].number == 6


def test_the_same_columns_are_the_same_version(registry: Registry) -> None:
    for format in ("AVRO", "JSON", "PROTOBUF"):
        where = SchemaRegistry(registry.url, format=format)
        ids = {registered_for(where, COLUMNS, f"again-{format}").id for _ in range(3)}
        assert len(ids) == 1
        assert where.for_topic(f"again-{format}").schema().version == 1


@pytest.mark.parametrize(
    ("format", "kind", "words"),
    [
        ("PROTOBUF", pa.struct([("a", pa.list_(pa.list_(pa.int32())))]), "a list or a map within another"),
        ("PROTOBUF", pa.struct([("a", pa.date32())]), "no type for 'a'"),
        ("PROTOBUF", pa.struct([("a b", pa.int32())]), "cannot be called 'a b'"),
        ("PROTOBUF", pa.string(), "no single string"),
        ("JSON", pa.struct([("a", pa.map_(pa.int32(), pa.int32()))]), "keys of a map are text"),
        ("JSON", pa.struct([("a", pa.duration("s"))]), "no type for 'orders.a'"),
    ],
)
def test_columns_that_a_format_has_no_words_for_are_refused_with_a_sentence(
    registry: Registry, format: str, kind: Any, words: str
) -> None:
    with pytest.raises(OttlaError, match=words):
        registered_for(SchemaRegistry(registry.url, format=format), kind, "orders")


def test_a_format_that_there_is_not_is_told_of() -> None:
    with pytest.raises(OttlaError, match="AVRO, JSON or PROTOBUF, not 'XML'"):
        SchemaRegistry("http://127.0.0.1:9", format="XML")
