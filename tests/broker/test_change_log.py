"""What is changed leaves a line in the log, with who asked for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

from ottla.broker.controller.change_log import changes
from ottla.metadata.image import ClusterImage
from ottla.protocol.messages import MetadataRequest
from ottla.testing import Broker
from tests.support.raw_client import RawClient, batch_of

CLIENT = {"client.id": "ops"}


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("ottla"), "propagate", True)
    caplog.set_level(logging.INFO, "ottla.changes")
    return caplog


@pytest.fixture
def broker(heard: pytest.LogCaptureFixture) -> Iterator[Broker]:
    with Broker({"num.partitions": "2"}) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, **CLIENT})


def lines(heard: pytest.LogCaptureFixture, *facts: str) -> list[tuple[object, ...]]:
    """Of each line so far: what happened, these facts, and who asked; then they are forgotten."""
    found = [
        (one.getMessage(), *(getattr(one, fact, None) for fact in facts), getattr(one, "client", None))
        for one in heard.records
        if one.name == "ottla.changes"
    ]
    assert all(getattr(one, "client_id", "ops") == "ops" for one in heard.records)
    heard.clear()
    return found


def test_the_life_of_a_topic(admin: AdminClient, heard: pytest.LogCaptureFixture) -> None:
    here = "127.0.0.1"
    admin.create_topics([NewTopic("t", 2, config={"retention.ms": "1000"})])["t"].result(30)
    assert lines(heard, "topic", "partitions", "settings") == [("topic created", "t", 2, "retention.ms=1000", here)]
    admin.create_partitions([NewPartitions("t", 5)])["t"].result(30)
    assert lines(heard, "topic", "partitions") == [("partitions added", "t", "2 -> 5", here)]
    change = [
        ConfigEntry("retention.ms", "2000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=change)
    admin.incremental_alter_configs([resource])[resource].result(30)
    told = "cleanup.policy: (not set) -> compact, retention.ms: 1000 -> 2000"
    assert lines(heard, "topic", "settings") == [("settings changed", "t", told, here)]
    admin.incremental_alter_configs([resource])[resource].result(30)
    admin.create_topics([NewTopic("u", 1)], validate_only=True)["u"].result(30)
    assert lines(heard) == []
    admin.delete_topics(["t"])["t"].result(30)
    assert lines(heard, "topic") == [("topic deleted", "t", here)]


def test_a_topic_that_somebody_asked_about(broker: Broker, heard: pytest.LogCaptureFixture) -> None:
    host, port = broker.bootstrap_servers.split(":")
    with RawClient(host, int(port), client_id="ops") as client:
        wanted = [MetadataRequest.MetadataRequestTopic(name="made-on-the-way")]
        client.call(MetadataRequest(topics=wanted, allow_auto_topic_creation=True), 12)
    assert lines(heard, "topic", "partitions") == [("topic created", "made-on-the-way", 2, "127.0.0.1")]


def test_records_and_groups(broker: Broker, admin: AdminClient, heard: pytest.LogCaptureFixture) -> None:
    broker.create_topic("t")
    assert lines(heard, "topic") == [("topic created", "t", None)]
    with RawClient.to(broker.bootstrap_servers) as client:
        client.produce("t", batch_of(b"a", b"b", b"c"))
    place = TopicPartition("t", 0, 2)
    admin.delete_records([place])[place].result(30)
    assert lines(heard, "topic", "first_offsets") == [("records deleted", "t", "0: 2", "127.0.0.1")]
    offsets = [ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 3)])]
    admin.alter_consumer_group_offsets(offsets)["g"].result(30)
    lines(heard)
    admin.delete_consumer_groups(["g"])["g"].result(30)
    assert lines(heard, "group") == [("group deleted", "g", "127.0.0.1")]


def test_settings_of_the_broker(admin: AdminClient, heard: pytest.LogCaptureFixture) -> None:
    change = [ConfigEntry("log.retention.ms", "5", incremental_operation=AlterConfigOpType.SET)]
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=change)
    admin.incremental_alter_configs([resource])[resource].result(30)
    told = ("settings changed", "1", "log.retention.ms: (not set) -> 5", "127.0.0.1")
    assert lines(heard, "broker", "settings") == [told]


def test_secrets_of_a_broker_are_not_shown() -> None:
    old = ClusterImage("c", broker_configs={"1": {"ssl.key.password": "first"}})
    new = ClusterImage(
        "c",
        broker_configs={
            "1": {
                "ssl.key.password": "second",
                "listener.name.inside.sasl.jaas.config": "third",
                "log.cleaner.threads": "2",
            }
        },
    )
    ((_, facts),) = changes(old, new)
    assert facts["settings"] == (
        "listener.name.inside.sasl.jaas.config: (not set) -> (hidden), log.cleaner.threads: (not set) -> 2, "
        "ssl.key.password: (hidden) -> (hidden)"
    )
