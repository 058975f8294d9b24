"""confluent-kafka's SchemaRegistryClient and its serialisers, unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.schema_registry_client import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    ServerConfig,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ottla.testing import Registry

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
OLDER = (
    '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},{"name":"age","type":"int","default":1}]}'
)
USER_JSON = """{"title": "User", "type": "object", "properties": {"name": {"type": "string"}},
 "required": ["name"], "additionalProperties": false}"""


@pytest.fixture
def client(registry: Registry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_every_call_of_the_client_is_answered(client: SchemaRegistryClient, subject: str) -> None:
    schema = Schema(USER, "AVRO", metadata=Metadata(None, MetadataProperties({"owner": "me"}), None))
    number = client.register_schema(subject, schema)
    assert client.get_schema(number).schema_str == USER
    registered = client.lookup_schema(subject, Schema(USER, "AVRO"))
    assert (registered.schema_id, registered.version, registered.subject) == (number, 1, subject)
    assert client.get_schema_by_guid(registered.guid).schema_str == USER
    assert subject in client.get_subjects()
    assert sorted(client.get_schema_types()) == ["AVRO", "JSON", "PROTOBUF"]
    assert client.get_latest_version(subject).version == 1
    assert client.get_latest_with_metadata(subject, {"owner": "me"}).version == 1
    assert client.get_version(subject, 1).schema_id == number
    assert client.get_versions(subject) == [1]
    assert subject in client.get_subjects_by_schema_id(number)
    assert any(place.subject == subject for place in client.get_schema_versions(number))
    assert client.get_referenced_by(subject, 1) == []
    assert client.test_compatibility(subject, Schema(OLDER, "AVRO")) is True
    assert client.test_compatibility_all_versions(subject, Schema('"int"', "AVRO")) is False
    assert client.set_compatibility(subject, "FULL") == {"compatibility": "FULL"}
    assert client.get_compatibility(subject) == "FULL"
    client.set_config(
        subject, ServerConfig(compatibility=ConfigCompatibilityLevel.BACKWARD, compatibility_group="major")
    )
    assert client.get_config(subject).compatibility_group == "major"
    client.delete_config(subject)
    assert client.get_compatibility() == "BACKWARD"
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    assert client.delete_mode(subject) == "READONLY"
    assert "." in client.get_contexts()
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema(subject, Schema('"int"', "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 40901)
    assert client.delete_version(subject, 1) == 1
    client.register_schema(f"{subject}-other", Schema('"int"', "AVRO"))
    assert client.delete_subject(f"{subject}-other") == [1]
    assert client.delete_subject(f"{subject}-other", permanent=True) == [1]


def test_avro_travels_and_evolves(client: SchemaRegistryClient) -> None:
    write = AvroSerializer(client, USER)
    data = write({"name": "Ada"}, context("avro-users"))
    assert data[0] == 0
    assert AvroDeserializer(client, OLDER)(data, context("avro-users")) == {"name": "Ada", "age": 1}
    newer = AvroSerializer(client, OLDER)({"name": "Bob", "age": 7}, context("avro-users"))
    assert AvroDeserializer(client, USER)(newer, context("avro-users")) == {"name": "Bob"}
    assert client.get_versions("avro-users-value") == [1, 2]


def test_avro_with_references_travels(client: SchemaRegistryClient) -> None:
    place = '{"type":"record","name":"Place","namespace":"geo","fields":[{"name":"x","type":"int"}]}'
    client.register_schema("geo.Place", Schema(place, "AVRO"))
    trip = '{"type":"record","name":"Trip","fields":[{"name":"to","type":"geo.Place"}]}'
    schema = Schema(trip, "AVRO", [SchemaReference("geo.Place", "geo.Place", 1)])
    data = AvroSerializer(client, schema)({"to": {"x": 4}}, context("trips"))
    assert AvroDeserializer(client)(data, context("trips")) == {"to": {"x": 4}}


def test_json_travels_and_is_checked(client: SchemaRegistryClient) -> None:
    data = JSONSerializer(USER_JSON, client)({"name": "Ada"}, context("json-users"))
    assert JSONDeserializer(USER_JSON, schema_registry_client=client)(data, context("json-users")) == {"name": "Ada"}
    assert client.get_latest_version("json-users-value").schema.schema_type == "JSON"


def message_type(name: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="ottla.test", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name=name)
    message.field.add(name="name", number=1, type=9, label=1)
    message.field.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ottla.test.{name}"))


def test_protobuf_travels_as_descriptors_and_is_shown_as_text(client: SchemaRegistryClient) -> None:
    user = message_type("User")
    data = ProtobufSerializer(user, client, {"use.deprecated.format": False})(user(name="Ada"), context("proto-users"))
    settings = {"use.deprecated.format": False}
    read = ProtobufDeserializer(user, settings, schema_registry_client=client)(data, context("proto-users"))
    assert read.name == "Ada"
    latest = client.get_latest_version("proto-users-value")
    assert latest.schema.schema_type == "PROTOBUF"
    assert "message User {" in latest.schema.schema_str and "string name = 1;" in latest.schema.schema_str
    assert client.get_schema(latest.schema_id, fmt="serialized").schema_str.strip() != latest.schema.schema_str


# Confluent's cloud has them, its registry does not.
NOT_OF_A_REGISTRY = {"create_association", "delete_associations", "get_associations_by_resource_name"}


def test_there_is_no_other_call(registry: Registry) -> None:
    """Whatever the client can do is called by the tests of this file, or named above."""
    called: set[str] = set()

    class Recorder:
        def __init__(self, inner: SchemaRegistryClient) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            called.add(name)
            return getattr(self._inner, name)

    client: Any = Recorder(SchemaRegistryClient({"url": registry.url}))
    test_every_call_of_the_client_is_answered(client, "all-calls-value")
    full = client.register_schema_full_response("all-calls-full", Schema(USER, "AVRO"))
    assert full.schema_id > 0 and full.version in (None, 1)
    assert client.update_global_mode("READONLY") == "READONLY"
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("all-calls-never", Schema(USER, "AVRO"))
    assert caught.value.error_code == 42205
    assert client.update_global_mode("READWRITE") == "READWRITE"
    client.clear_caches()
    client.clear_latest_caches()
    client.config()
    client.close()
    SchemaRegistryClient.new_client({"url": registry.url})
    public = {name for name in vars(SchemaRegistryClient) if not name.startswith("_")}
    public |= {name for kind in SchemaRegistryClient.__mro__[1:-1] for name in vars(kind) if not name.startswith("_")}
    callables = {name for name in public if callable(getattr(SchemaRegistryClient, name))}
    assert callables - called - NOT_OF_A_REGISTRY <= {"new_client"}
