"""Pipelines whose records have schemas in a registry: read, evolved, judged, joined and written back."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import ottla.spark
from ottla.client.schema_registry import RegistryClient
from ottla.common.errors import OttlaError
from ottla.schemas.registry import SchemaRegistry
from ottla.schemas.rows import Values
from ottla.spark.pipeline.checking import check
from ottla.spark.pipeline.definition import pipeline
from ottla.spark.pipeline.loading import load
from ottla.testing import Broker, Registry
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running
from tests.spark.pipeline.test_runner import eventually, read, send

ORDER = """{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"customer","type":"string"},
 {"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
 {"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[
   {"name":"sku","type":"string"},{"name":"euro","type":"double"}]}}}]}"""
NEWER = ORDER.replace(
    '{"name":"customer"', '{"name":"note","type":["null","string"],"default":null},{"name":"customer"'
)
VALUE = {"id": 1, "customer": "Ada", "at": 1_700_000_000_000, "lines": [{"sku": "a", "euro": 2.5}]}


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[Registry]:
    with Registry(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture
def client(registry: Registry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def avro(client: SchemaRegistryClient, topic: str, schema: str, *values: Any) -> list[bytes]:
    write = AvroSerializer(client, schema)
    return [write(value, SerializationContext(topic, MessageField.VALUE)) for value in values]


def run_once(spark: Any, made: Any, servers: str, folder: Path) -> None:
    with Running(spark, made, servers, folder, once=True) as running:
        running.wait()
    assert running.error is None, running.heard.sentences


def test_avro_is_read_evolved_and_written_back(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    source, target, dead = kafka.create(servers), kafka.create(servers), kafka.create(servers)
    first = avro(client, source, ORDER, VALUE)
    there = SchemaRegistry(registry.url)

    @pipeline(name=name, to=target, key="customer", dead_letters=dead, schema=there)
    def totals(topics: Any) -> Any:
        orders = topics.stream(source, there.of(f"{source}-value", 1), expect={"no lines": "size(lines) > 0"})
        return orders.selectExpr("customer", "at", "aggregate(lines, 0d, (sum, line) -> sum + line.euro) as euro")

    # A writer of a later version, one of a schema that does not fit, and values that are none.
    newer = avro(client, source, NEWER, VALUE | {"id": 2, "customer": "Bob", "note": "x"})
    client.set_compatibility(f"{source}-value", "NONE")
    stranger = avro(
        client, source, '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}', {"id": "x"}
    )
    bad = [
        stranger[0], b"no schema", struct.pack(">bI", 0, 999_999) + b"x", first[0][:-3],
        avro(client, source, ORDER, VALUE | {"lines": []})[0],
    ]  # fmt: skip
    send(servers, source, [*first, *newer, *bad, None])
    run_once(spark, made=totals, servers=servers, folder=tmp_path)

    decode = AvroDeserializer(client)
    written = read(servers, target)
    values = [decode(value, SerializationContext(target, MessageField.VALUE)) for _, value, _ in written]
    assert [key for key, _, _ in written] == [b"Ada", b"Bob"]
    assert [(value["customer"], value["euro"]) for value in values] == [("Ada", 2.5), ("Bob", 2.5)]
    assert values[0]["at"].timestamp() == 1_700_000_000
    assert client.get_latest_version(f"{target}-value").version == 1
    letters = read(servers, dead)
    assert [value for _, value, _ in letters] == [*bad, None]
    reasons = [headers["ottla.reason"].decode() for _, _, headers in letters]
    for reason, words in zip(
        reasons,
        ["field 'id'", "not written with a registry", "no schema 999999", "ends too early", "no lines", "no value"],
        strict=True,
    ):
        assert words in reason


def test_keys_are_read_and_written_with_schemas_too(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    source, by_struct, by_column, dead = (kafka.create(servers) for _ in range(4))
    line = '{"type":"record","name":"Line","fields":[{"name":"order","type":"long"},{"name":"line","type":"int"}]}'
    write_key = AvroSerializer(client, line)
    key = write_key({"order": 7, "line": 2}, SerializationContext(source, MessageField.KEY))
    (value,) = avro(client, source, ORDER, VALUE)
    producer = Producer({"bootstrap.servers": servers})
    for each in (key, None, b"no schema", key[:-1]):
        producer.produce(source, value, each)
    producer.flush(30)
    there = SchemaRegistry(registry.url)

    @pipeline(name=name, dead_letters=dead, schema=there, key_schema=there)
    def copied(topics: Any) -> Any:
        orders = topics.stream(source, there, key_schema=there, expect={"line 9": "coalesce(key.line, 0) <> 9"})
        return {
            by_struct: orders.select("key", "customer"),
            by_column: orders.selectExpr("key.order as key", "customer"),
        }

    run_once(spark, copied, servers, tmp_path)
    decode = AvroDeserializer(client)

    def keys(topic: str) -> list[Any]:
        found = [found for found, _, _ in read(servers, topic)]
        return [decode(one, SerializationContext(topic, MessageField.KEY)) for one in found]

    assert keys(by_struct) == [{"order": 7, "line": 2}, None]
    assert keys(by_column) == [7, None]
    assert json.loads(client.get_latest_version(f"{by_column}-key").schema.schema_str) == "long"
    values = [
        decode(found, SerializationContext(by_column, MessageField.VALUE)) for _, found, _ in read(servers, by_column)
    ]
    assert values == [{"customer": "Ada"}] * 2, "a key is no part of the value"
    letters = read(servers, dead)
    assert [found for found, _, _ in letters] == [b"no schema", key[:-1]]
    reasons = [headers["ottla.reason"].decode() for _, _, headers in letters]
    assert all(reason.startswith("the key is bad: ") for reason in reasons)
    assert "not written with a registry" in reasons[0] and "ends too early" in reasons[1]


def test_what_the_subject_would_refuse_does_not_start(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    client.register_schema(f"{source}-value", Schema(ORDER, "AVRO"))
    client.register_schema(f"{target}-value", Schema('{"type":"record","name":"X","fields":[]}', "AVRO"))
    there = SchemaRegistry(registry.url)

    @pipeline(name=name, to=target, schema=there)
    def copied(topics: Any) -> Any:
        return topics.stream(source, there)

    with pytest.raises(OttlaError, match="would refuse"):
        check(spark, copied, {"kafka.bootstrap.servers": servers})
    assert client.get_versions(f"{target}-value") == [1], "a check registers nothing"

    @pipeline(name=name, to=target, schema=there)
    def lost(topics: Any) -> Any:
        return topics.stream(target, there.of("nowhere-value"))

    with pytest.raises(OttlaError, match="no schema 'nowhere-value'"):
        check(spark, lost, {"kafka.bootstrap.servers": servers})


@pytest.mark.slow
def test_a_table_of_a_registry_is_joined(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    orders, customers, target = (kafka.create(servers) for _ in range(3))
    customer = (
        '{"type":"record","name":"Customer","fields":[{"name":"customer","type":"string"},'
        '{"name":"country","type":"string"}]}'
    )
    send(servers, customers, avro(client, customers, customer, {"customer": "Ada", "country": "UK"}))
    send(servers, orders, avro(client, orders, ORDER, VALUE, VALUE | {"customer": "Bob"}))
    there = SchemaRegistry(registry.url)
    for kind in ("", "customer"):

        @pipeline(name=f"{name}{kind}", to=target)
        def joined(topics: Any, kind: str = kind) -> Any:
            table = topics.table(customers, there, by=kind or ())
            return topics.stream(orders, there).join(table, "customer", "left").select("customer", "country")

        run_once(spark, joined, servers, tmp_path)
    values = [json.loads(value or b"") for _, value, _ in read(servers, target)]
    assert values == [{"customer": "Ada", "country": "UK"}, {"customer": "Bob"}] * 2


def test_json_schema_and_protobuf_are_read(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    as_json, as_protobuf, target, dead = (kafka.create(servers) for _ in range(4))
    schema = '{"title":"O","type":"object","properties":{"id":{"type":"integer"},"customer":{"type":"string"}}}'
    write = JSONSerializer(schema, client)
    send(servers, as_json, [write({"id": 1, "customer": "Ada"}, SerializationContext(as_json, MessageField.VALUE))])
    proto = 'syntax = "proto3"; message Order { int64 id = 1; string customer = 2; }'
    client.register_schema(f"{as_protobuf}-value", Schema(proto, "PROTOBUF"))
    encode = Values(RegistryClient(registry.url)).encoder(f"{as_protobuf}-value")
    send(servers, as_protobuf, [encode({"id": 2, "customer": "Bob"}), b"\x00\x00\x00\x00\x01\x00\xff"])
    there = SchemaRegistry(registry.url)

    @pipeline(name=name, to=target, key="customer", dead_letters=dead)
    def both(topics: Any) -> Any:
        return topics.stream(as_json, there).unionByName(topics.stream(as_protobuf, there)).drop("record")

    run_once(spark, both, servers, tmp_path)
    values = sorted(read(servers, target), key=lambda row: row[0] or b"")
    assert [json.loads(value or b"") for _, value, _ in values] == [
        {"id": 1, "customer": "Ada"},
        {"id": 2, "customer": "Bob"},
    ]
    assert len(read(servers, dead)) == 1


@pytest.mark.slow
def test_the_latest_schema_of_any_format_is_written_if_none_is_to_be_registered(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    source = kafka.create(servers)
    send(servers, source, [b'{"id": 7, "customer": "Ada"}'])
    schemas = {
        "AVRO": '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"},{"name":"customer","type":'
        '"string"},{"name":"more","type":"string","default":"as ever"}]}',
        "JSON": '{"title":"O","type":"object","properties":{"id":{"type":"integer"},"customer":{"type":"string"}}}',
        "PROTOBUF": 'syntax = "proto3"; message Order { int64 id = 1; string customer = 2; }',
    }
    targets = {kind: kafka.create(servers) for kind in schemas}
    for kind, text in schemas.items():
        client.register_schema(f"{targets[kind]}-value", Schema(text, kind))

    @pipeline(name=name, schema=SchemaRegistry(registry.url, auto_register=False))
    def spread(topics: Any) -> Any:
        rows = topics.stream(source, "id long, customer string")
        return dict.fromkeys(targets.values(), rows)

    run_once(spark, spread, servers, tmp_path)
    values = Values(RegistryClient(registry.url))
    found = {kind: values.decode(read(servers, target)[0][1] or b"") for kind, target in targets.items()}
    assert found["AVRO"] == {"id": 7, "customer": "Ada", "more": "as ever"}
    assert found["JSON"] == {"id": 7, "customer": "Ada"}
    assert found["PROTOBUF"] == {"id": "7", "customer": "Ada"}
    assert JSONDeserializer(schemas["JSON"], schema_registry_client=client)(
        read(servers, targets["JSON"])[0][1], SerializationContext(targets["JSON"], MessageField.VALUE)
    )


def test_a_sql_file_reads_and_writes_with_schemas(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, avro(client, source, ORDER, VALUE))
    file = tmp_path / "totals.sql"
    file.write_text(
        f"-- name: {name}\n-- registry: {registry.url}\n-- stream: {source} as orders (*)\n-- to: {target}\n"
        "-- schema: registry json\nselect customer, size(lines) as count, at, encode(customer, 'utf-8') as raw, lines, "
        "timestamp_micros(-1) as early, null as nothing, cast(0.1 as decimal(9, 2)) as exact from orders\n"
    )
    run_once(spark, load(file), servers, tmp_path)
    ((_, value, _),) = read(servers, target)
    text = client.get_latest_version(f"{target}-value").schema.schema_str or ""
    as_json = JSONDeserializer(text, schema_registry_client=client)  # which validates
    assert as_json(value, SerializationContext(target, MessageField.VALUE)) == {
        "customer": "Ada", "count": 1, "at": "2023-11-14T22:13:20.000000Z", "raw": "QWRh", "exact": 0.1,
        "lines": [{"sku": "a", "euro": 2.5}], "early": "1969-12-31T23:59:59.999999Z",
    }  # fmt: skip


def test_a_sql_file_reads_keys_of_streams_and_tables_and_writes_them(
    spark: Any, servers: str, registry: Registry, client: SchemaRegistryClient, name: str, tmp_path: Path
) -> None:
    orders, customers, target, dead = (kafka.create(servers) for _ in range(4))
    country = '{"type":"record","name":"Customer","fields":[{"name":"country","type":"string"}]}'
    producer = Producer({"bootstrap.servers": servers})
    write_long, write_text = AvroSerializer(client, '"long"'), AvroSerializer(client, '"string"')
    (ada,) = avro(client, customers, country, {"country": "UK"})
    producer.produce(customers, ada, write_text("Ada", SerializationContext(customers, MessageField.KEY)))
    producer.produce(customers, ada, b"no schema")
    (value,) = avro(client, orders, ORDER, VALUE)
    producer.produce(orders, value, write_long(42, SerializationContext(orders, MessageField.KEY)))
    producer.flush()
    file = tmp_path / "joined.sql"
    file.write_text(
        f"-- name: {name}\n-- registry: {registry.url}\n-- stream: {orders} as orders (*) with key\n"
        f"-- table: {customers} as customers (*) with key by key\n-- to: {target}\n-- key: number\n"
        f"-- dead-letters: {dead}\n-- schema: registry protobuf\n-- key-schema: registry\n"
        "select orders.key as number, customer, country from orders join customers on customer = customers.key\n"
    )
    run_once(spark, load(file), servers, tmp_path)
    ((key, value, _),) = read(servers, target)
    assert AvroDeserializer(client)(key, SerializationContext(target, MessageField.KEY)) == 42
    assert client.get_latest_version(f"{target}-value").schema.schema_type == "PROTOBUF"
    assert Values(RegistryClient(registry.url)).decode(value or b"") == {
        "number": "42", "customer": "Ada", "country": "UK"
    }  # fmt: skip
    ((_, _, headers),) = read(servers, dead)
    assert b"the key is bad" in headers["ottla.reason"]


@pytest.mark.parametrize("line", ["schema: registry xml", "key-schema: avro"])
def test_a_sql_file_says_which_words_there_are_for_schemas(line: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.sql"
    file.write_text(f"-- stream: orders (*)\n-- {line}\nselect 1\n")
    with pytest.raises(OttlaError, match=r"line 2: write `-- (key-)?schema: registry`"):
        load(file)


@pytest.mark.slow
def test_a_registry_that_is_away_is_waited_for(
    spark: Any, servers: str, client: SchemaRegistryClient, registry: Registry, name: str, tmp_path: Path
) -> None:
    """What is bad is a value, not the registry: nothing goes to the dead letters while nobody can say what it is."""
    source, target, dead = (kafka.create(servers) for _ in range(3))
    first = avro(client, source, ORDER, VALUE)
    other = Registry(servers)
    other.start()
    there = SchemaRegistry(other.url)

    @pipeline(name=name, to=target, dead_letters=dead)
    def copied(topics: Any) -> Any:
        return topics.stream(source, there.of(f"{source}-value", 1)).select("id")

    with Running(spark, copied, servers, tmp_path) as running:
        send(servers, source, first)
        eventually(lambda: len(read(servers, target)) == 1)
        port = other.url.rpartition(":")[2]
        other.stop()
        newer = avro(client, source, NEWER, VALUE | {"id": 2, "note": None})
        send(servers, source, newer)
        eventually(lambda: any("no registry answers" in sentence for sentence in running.heard.sentences))
        with Registry(servers, port=int(port)):
            eventually(lambda: len(read(servers, target)) == 2)
    assert read(servers, dead) == []


def test_columns_of_any_frame_are_decoded_and_encoded(
    spark: Any, registry: Registry, client: SchemaRegistryClient, servers: str
) -> None:
    topic = kafka.create(servers)
    values = avro(client, topic, ORDER, VALUE)
    frame = spark.createDataFrame([(values[0],), (b"bad",), (None,)], "value binary")
    there = SchemaRegistry(registry.url).of(f"{topic}-value")
    rows = frame.select(ottla.spark.from_registry("value", there, mode="PERMISSIVE").alias("o")).select("o.*").collect()
    assert [row.customer for row in rows] == ["Ada", None, None]
    with pytest.raises(Exception, match="not written with a registry"):
        frame.select(ottla.spark.from_registry("value", there)).collect()
    made = spark.createDataFrame([(1, "x")], "a int, b string")
    encoded = made.select(ottla.spark.to_registry(made, SchemaRegistry(registry.url), topic="made").alias("value"))
    decoded = encoded.select(ottla.spark.from_registry("value", there.of("made-value")).alias("o")).select("o.*")
    assert [tuple(row) for row in decoded.collect()] == [(1, "x")]


def test_a_value_is_decoded_once_for_each_output(spark: Any, registry: Registry, client: SchemaRegistryClient) -> None:
    from ottla.spark.pipeline.decoding import dead_letters, good_rows, judged, parse_schema
    from tests.spark.pipeline.test_decoding import records

    client.register_schema("once-value", Schema(ORDER, "AVRO"))
    columns = parse_schema(SchemaRegistry(registry.url), "once")
    rows = judged(records(spark, ["x"]), columns, {"too small": "id > 1", "nobody": "customer <> ''"})
    for frame in (good_rows(rows).select("id", "customer", "at"), dead_letters(rows, "dead", "p")):
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        assert plan.count("ArrowEvalPython") == 1 and plan.count("decode(") <= 2, plan
