"""Converters with a registry: what they write is read by themselves and by others; one that is away is waited for."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.api import Column, Field, Outage, Records, Schema, SchemaType
from ottla.connect.api.data import DATE, DECIMAL, TIME, TIMESTAMP
from ottla.connect.conversion import sink_side, source_side
from ottla.connect.conversion.arrow import from_python
from ottla.testing import Broker, Registry
from tests.connect.conversion.batches import rows

pytest.importorskip("confluent_kafka.schema_registry", reason="confluent-kafka's registry client is not installed")


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Broker() as broker, Registry(broker.bootstrap_servers) as running:
        yield running


def optional(kind: SchemaType) -> Schema:
    return Schema(kind, optional=True)


ADDRESS = Schema(
    SchemaType.STRUCT,
    optional=True,
    name="shop.Address",
    fields=(Field("city", Schema(SchemaType.STRING)), Field("zip", optional(SchemaType.INT32))),
)
ORDER = Schema(
    SchemaType.STRUCT,
    name="shop.Order",
    version=2,
    fields=(
        Field("id", Schema(SchemaType.INT64)),
        Field("small", Schema(SchemaType.INT8)),
        Field("name", optional(SchemaType.STRING)),
        Field("price", Schema(SchemaType.FLOAT64)),
        Field("amount", Schema(SchemaType.BYTES, True, DECIMAL, 1, parameters={"scale": "2"})),
        Field("day", Schema(SchemaType.INT32, False, DATE, 1)),
        Field("time", Schema(SchemaType.INT32, True, TIME, 1)),
        Field("at", Schema(SchemaType.INT64, False, TIMESTAMP, 1)),
        Field("data", optional(SchemaType.BYTES)),
        Field("tags", Schema(SchemaType.ARRAY, value_schema=Schema(SchemaType.STRING))),
        Field(
            "counts",
            Schema(SchemaType.MAP, key_schema=Schema(SchemaType.STRING), value_schema=Schema(SchemaType.INT32)),
        ),
        Field("address", ADDRESS),
        Field("state", Schema(SchemaType.STRING, optional=True, default="new")),
        Field("fee", Schema(SchemaType.BYTES, False, DECIMAL, 1, default=Decimal("1.50"), parameters={"scale": "2"})),
    ),
)
AT = datetime.datetime(2020, 2, 29, 12, 30, 0, 250_000, tzinfo=datetime.UTC)


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "small": number % 100,
        "name": None if number % 3 == 0 else f"name {number}",
        "price": number / 4,
        "amount": None if number % 4 == 0 else Decimal(number).scaleb(-2),
        "day": AT.date(),
        "time": AT.time() if number % 2 else None,
        "at": AT,
        "data": b"\x00\xff" if number % 2 else None,
        "tags": ["a"] * (number % 3),
        "counts": [("k", number)],
        "address": {"city": "Bern", "zip": None} if number % 2 else None,
        "state": "old",
        "fee": Decimal("2.25"),
    }


def records(schema: Schema, values: list[Any], topic: str) -> Records:
    count = len(values)
    return Records(
        topics=pa.array([topic] * count, pa.string()),
        partitions=pa.nulls(count, pa.int32()),
        timestamps=pa.nulls(count, pa.int64()),
        keys=Column(None, [None] * count),
        values=from_python(schema, values),
    )


def config(name: str, registry: Registry, **more: str) -> dict[str, str]:
    made = {"value.converter": name, "value.converter.schema.registry.url": registry.url}
    return {**made, **{f"value.converter.{key.replace('_', '.')}": text for key, text in more.items()}}


CONVERTERS = ["io.confluent.connect.avro.AvroConverter", "io.confluent.connect.json.JsonSchemaConverter"]


@pytest.mark.parametrize("name", CONVERTERS)
def test_what_is_written_is_read_again(registry: Registry, name: str) -> None:
    settings = config(name, registry)
    values = [*(order(number) for number in range(20)), None]
    topic = f"round-{name.rpartition('.')[2]}"
    encoded = source_side(settings).run(records(ORDER, values, topic)).rows
    assert encoded.column("value")[20].as_py() is None
    [found] = sink_side(settings).run(rows(encoded.column("value").to_pylist())).records
    assert found.values.data.to_pylist() == values  # type: ignore[union-attr]
    assert found.values.schema is not None
    assert [each.name for each in found.values.schema.fields] == [each.name for each in ORDER.fields]
    assert [each.schema.type for each in found.values.schema.fields] == [each.schema.type for each in ORDER.fields]


@pytest.mark.parametrize("name", ["AvroConverter", "JsonSchemaConverter"])
def test_kafka_connects_schema_is_kept(registry: Registry, name: str) -> None:
    settings = config(name, registry)
    encoded = source_side(settings).run(records(ORDER, [order(1)], f"kept-{name}")).rows
    [found] = sink_side(settings).run(rows(encoded.column("value").to_pylist())).records
    assert found.values.schema == ORDER


def test_confluents_deserialiser_reads_what_the_avro_converter_writes(registry: Registry) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    encoded = source_side(config("AvroConverter", registry)).run(records(ORDER, [order(1)], "theirs")).rows
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    found: Any = read(encoded.column("value")[0].as_py(), SerializationContext("theirs", MessageField.VALUE))
    assert found["id"] == 1
    assert found["amount"] == Decimal("0.01")
    assert found["at"] == AT
    assert found["counts"] == {"k": 1}


def test_values_of_two_schemas_are_two_runs(registry: Registry) -> None:
    settings = config("AvroConverter", registry)
    conversion = source_side(settings)
    text = conversion.run(records(Schema(SchemaType.STRING), ["x", "y"], "texts")).rows.column("value").to_pylist()
    number = conversion.run(records(Schema(SchemaType.INT64), [7], "numbers")).rows.column("value").to_pylist()
    found = sink_side(settings).run(rows([text[0], *number, text[1]])).records
    assert [each.values.data.to_pylist() for each in found] == [["x"], [7], ["y"]]  # type: ignore[union-attr]


def test_a_value_without_an_id_and_one_of_an_unknown_id_fail_alone(registry: Registry) -> None:
    settings = {**config("AvroConverter", registry), "errors.tolerance": "all"}
    good = source_side(settings).run(records(Schema(SchemaType.STRING), ["x"], "alone")).rows.column("value")[0].as_py()
    found = sink_side(settings).run(rows([b"plain", good, b"\0\0\xff\xff\xff1", good[:5] + b"\x08"]))
    assert [each.offset for each in found.failures] == [0, 2, 3]
    assert [len(each) for each in found.records] == [1]


class Clock:
    """Time that only passes while somebody sleeps."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def test_a_registry_that_is_away_is_an_outage_and_no_bad_record() -> None:
    away = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://127.0.0.1:9"}
    clock = Clock()
    settings = {**away, "errors.tolerance": "all", "errors.retry.timeout": "5000", "errors.retry.delay.max.ms": "1000"}
    with pytest.raises(Outage, match="no registry answers"):
        sink_side(settings, clock=clock, sleep=clock.sleep).run(rows([b"\0\0\0\0\1x"]))
    assert 4000 <= clock.ms <= 5000


def test_a_login_is_taken_from_its_setting() -> None:
    from ottla.connect.api.config import ConfigInvalid
    from ottla.connect.conversion.settings import parts_of

    settings = {
        "value.converter": "AvroConverter",
        "value.converter.schema.registry.url": "http://127.0.0.1:9",
        "value.converter.basic.auth.credentials.source": "USER_INFO",
    }
    with pytest.raises(ConfigInvalid, match=r"basic\.auth\.user\.info"):
        parts_of(settings)
    made: Any = parts_of({**settings, "value.converter.basic.auth.user.info": "anna:s3:cret"}).value
    assert made.client._headers["Authorization"] == "Basic YW5uYTpzMzpjcmV0"


def test_the_subject_follows_its_strategy(registry: Registry) -> None:
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    settings = config("AvroConverter", registry, value_subject_name_strategy=strategy)
    source_side(settings).run(records(ORDER, [order(1)], "named"))
    from ottla.client.schema_registry import RegistryClient

    told = RegistryClient(registry.url).get("subjects", "shop.Order", "versions", "latest")
    assert json.loads(told["schema"])["name"] == "Order"


def test_a_json_schema_that_somebody_wrote_by_hand_is_read(registry: Registry) -> None:
    from ottla.client.schema_registry import RegistryClient

    tree = {
        "type": "object",
        "properties": {"b": {"type": ["null", "integer"]}, "a": {"$ref": "#/definitions/text"}},
        "definitions": {"text": {"type": "string"}},
    }
    body = {"schema": json.dumps(tree), "schemaType": "JSON"}
    number = RegistryClient(registry.url).post(body, "subjects", "by-hand-value", "versions")["id"]
    settings = {**config("JsonSchemaConverter", registry), "errors.tolerance": "all"}
    head = b"\0" + number.to_bytes(4, "big")
    found = sink_side(settings).run(rows([head + b'{"a":"x","b":3}', head + b'{"a":"y"}', head + b'{"b":1}']))
    assert [each.offset for each in found.failures] == [2]
    [read] = found.records
    assert read.values.data.to_pylist() == [{"a": "x", "b": 3}, {"a": "y", "b": None}]  # type: ignore[union-attr]
    lenient = config("JsonSchemaConverter", registry, use_optional_for_nonrequired="true")
    assert len(sink_side(lenient).run(rows([head + b'{"b":1}'])).records) == 1


EVENT = Schema(
    SchemaType.STRUCT,
    name="shop.Event",
    fields=(
        Field("id", Schema(SchemaType.INT64)),
        Field("small", Schema(SchemaType.INT32)),
        Field("name", optional(SchemaType.STRING)),
        Field("price", Schema(SchemaType.FLOAT64)),
        Field("at", Schema(SchemaType.INT64, True, TIMESTAMP, 1)),
        Field("data", optional(SchemaType.BYTES)),
        Field("tags", Schema(SchemaType.ARRAY, value_schema=Schema(SchemaType.STRING))),
        Field(
            "counts",
            Schema(SchemaType.MAP, key_schema=Schema(SchemaType.STRING), value_schema=Schema(SchemaType.INT32)),
        ),
        Field("address", ADDRESS),
    ),
)


def test_protobuf_is_written_and_read_again(registry: Registry) -> None:
    settings = config("io.confluent.connect.protobuf.ProtobufConverter", registry)
    names = {each.name for each in EVENT.fields}
    values = [{name: part for name, part in order(number).items() if name in names} for number in range(6)]
    encoded = source_side(settings).run(records(EVENT, [*values, None], "events")).rows.column("value").to_pylist()
    assert encoded[6] is None
    [found] = sink_side(settings).run(rows(encoded)).records
    assert found.values.data.to_pylist() == [*values, None]  # type: ignore[union-attr]
    assert found.values.schema is not None
    assert found.values.schema.name == "shop.Event"
    assert [each.schema.optional for each in found.values.schema.fields] == [
        each.schema.optional for each in EVENT.fields
    ]


def test_protobuf_refuses_what_it_has_no_type_for(registry: Registry) -> None:
    settings = {**config("ProtobufConverter", registry), "errors.tolerance": "all"}
    found = source_side(settings).run(records(ORDER, [order(1), order(2)], "refused"))
    assert found.rows.num_rows == 0
    assert ["no decimals" in each.error for each in found.failures] == [True, True]


def test_a_slice_of_records_is_written_as_if_it_were_whole(registry: Registry) -> None:
    settings = config("AvroConverter", registry)
    values = [{**order(number), "tags": ["x"] * number} for number in range(6)]
    part = records(ORDER, values, "sliced").slice(2, 3)
    encoded = source_side(settings).run(part).rows.column("value").to_pylist()
    [found] = sink_side(settings).run(rows(encoded)).records
    assert found.values.data.to_pylist() == values[2:5]  # type: ignore[union-attr]


def test_a_missing_right_at_the_registry_fails_the_connector_and_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.client.schema_registry import Refused, RegistryClient
    from ottla.connect.api import ConnectorFailure

    def refuse(*_: Any, **__: Any) -> Any:
        raise Refused(401, "Unauthorized")

    monkeypatch.setattr(RegistryClient, "get", refuse)
    away = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://127.0.0.1:9"}
    with pytest.raises(ConnectorFailure, match="Unauthorized"):
        sink_side({**away, "errors.tolerance": "all"}).run(rows([b"\0\0\0\0\1x"]))


def test_what_passes_by_itself_is_tried_again(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.client.schema_registry import RegistryClient, RegistryUnreachable

    settings = config("AvroConverter", registry)
    encoded = source_side(settings).run(records(Schema(SchemaType.STRING), ["x"], "again")).rows.column("value")
    answer, asked = RegistryClient.get, []

    def unsteady(self: RegistryClient, *path: object, **query: object) -> Any:
        asked.append(path)
        if len(asked) < 3:
            raise RegistryUnreachable("nobody is there")
        return answer(self, *path, **query)

    monkeypatch.setattr(RegistryClient, "get", unsteady)
    clock = Clock()
    conversion = sink_side({**settings, "errors.retry.timeout": "60000"}, clock=clock, sleep=clock.sleep)
    assert len(conversion.run(rows(encoded.to_pylist())).records) == 1
    assert clock.ms == 300 + 600


def test_what_others_write_in_avro_comes_through(registry: Registry) -> None:
    """Unions, enums, fixed, times in microseconds: read, written anew with the schema that was read, and read again."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    tree = {
        "type": "record",
        "name": "Odd",
        "namespace": "n",
        "fields": [
            {"name": "either", "type": ["null", "string", "int"], "default": None},
            {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "parts", "type": {"type": "array", "items": ["null", {"type": "record", "name": "Part", "fields": [
                {"name": "x", "type": "int", "default": 7}]}]}},
            {"name": "count", "type": "long", "default": 3},
        ],
    }  # fmt: skip
    write = AvroSerializer(SchemaRegistryClient({"url": registry.url}), json.dumps(tree))
    value = {
        "either": 5,
        "color": "BLUE",
        "hash": b"ab",
        "micros": AT.replace(microsecond=123456),
        "parts": [{"x": 1}, None],
        "count": 9,
    }
    context = SerializationContext("odd", MessageField.VALUE)
    written = [write({**value, "either": either}, context) for either in (5, "five", None)]
    settings = config("AvroConverter", registry)
    [found] = sink_side(settings).run(rows(written)).records
    schema = found.values.schema
    assert schema is not None
    assert schema.field_named("count") == Schema(SchemaType.INT64, default=3)
    read = found.values.data.to_pylist()  # type: ignore[union-attr]
    assert [each["either"] for each in read] == [{"string": None, "int": 5}, {"string": "five", "int": None}, None]
    assert read[0]["color"] == "BLUE"
    assert read[0]["hash"] == b"ab"
    assert read[0]["micros"] == 1_582_979_400_123_456
    assert read[0]["parts"] == [{"x": 1}, None]
    again = source_side(settings).run(records(schema, read, "odd-again")).rows.column("value").to_pylist()
    [anew] = sink_side(settings).run(rows(again)).records
    assert anew.values.data.to_pylist() == read  # type: ignore[union-attr]


def test_a_map_whose_keys_are_no_strings_goes_through_avro(registry: Registry) -> None:
    schema = Schema(
        SchemaType.MAP, key_schema=Schema(SchemaType.INT32), value_schema=Schema(SchemaType.STRING, optional=True)
    )
    settings = config("AvroConverter", registry)
    values = [[(1, "a"), (2, None)], []]
    encoded = source_side(settings).run(records(schema, values, "numbered")).rows.column("value").to_pylist()
    [found] = sink_side(settings).run(rows(encoded)).records
    assert found.values.schema == schema
    assert found.values.data.to_pylist() == values  # type: ignore[union-attr]
