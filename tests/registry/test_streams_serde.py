"""Topologies of Streams whose records have schemas of a registry."""

from __future__ import annotations

import pickle

import httpx
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla.schemas.rows import BadValue
from ottla.streams import StreamsBuilder, TopologyTestDriver, serdes
from ottla.streams.registry import RegistrySerde
from ottla.testing import Registry
from tests.registry.test_api import register

ORDER = '{"type":"record","name":"Order","fields":[{"name":"euro","type":"double"}]}'
NEWER = ORDER.replace("]}", ',{"name":"note","type":"string","default":"-"}]}')


def test_a_topology_reads_and_writes_with_schemas(registry: Registry, http: httpx.Client) -> None:
    serde = RegistrySerde(registry.url)
    for topic in ("streams-in", "streams-out"):
        register(http, f"{topic}-value", ORDER)
    builder = StreamsBuilder(key=serdes.string, value=serde)
    builder.stream("streams-in").map_values(lambda order: {"euro": order["euro"] * 2}).to("streams-out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("streams-in").pipe({"euro": 3.5}, key="a")
        assert driver.output_topic("streams-out").read().value == {"euro": 7.0}


def test_values_are_those_of_confluents_serialisers(registry: Registry) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("shared", MessageField.VALUE)
    serde = pickle.loads(pickle.dumps(RegistrySerde(registry.url, schema=NEWER)))
    old = AvroSerializer(client, ORDER)({"euro": 1.0}, context)
    assert serde.deserialize("shared", old) == {"euro": 1.0, "note": "-"}, (
        "an older writer, read by the reader's schema"
    )
    assert RegistrySerde(registry.url).deserialize("shared", old) == {"euro": 1.0}
    new = serde.serialize("shared", {"euro": 2.0, "note": "x"})
    assert AvroDeserializer(client)(new, context) == {"euro": 2.0, "note": "x"}
    assert client.get_versions("shared-value") == [1, 2], "it registered what it writes"


def test_what_is_no_value_of_a_registry_is_told_of(registry: Registry) -> None:
    with pytest.raises(BadValue, match="not written with a registry"):
        RegistrySerde(registry.url).deserialize("any", b"text")
