"""Configuration of a running broker: changes take effect, last, and do not get lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from ottla.broker.broker import Broker as RunningBroker
from ottla.protocol.messages import CreateTopicsRequest
from ottla.storage.log_config import LogConfig
from ottla.testing import Broker
from tests.support.config_client import ConfigClient
from tests.support.raw_client import RawClient


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"ssl.keystore.password": "secret"}) as running:
        yield running


def _client(broker: Broker) -> ConfigClient:
    host, port = broker.bootstrap_servers.split(":")
    return ConfigClient(host, int(port))


def _inside(broker: Broker) -> RunningBroker:
    return broker.server.broker


@pytest.fixture
def client(broker: Broker) -> Iterator[ConfigClient]:
    with _client(broker) as connected:
        yield connected


def test_a_topic_setting_takes_effect_at_once(broker: Broker, client: ConfigClient) -> None:
    client.create_topic("t", {"max.message.bytes": "5000"})
    assert _log_config(broker).max_message_bytes == 5000
    client.set("topic", "t", "max.message.bytes", "6000")
    assert _log_config(broker).max_message_bytes == 6000
    client.alter("topic", "t", ("delete", "max.message.bytes", None))
    assert _log_config(broker).max_message_bytes == 1_048_588


def test_a_dynamic_broker_setting_reaches_topics_that_do_not_set_it(broker: Broker, client: ConfigClient) -> None:
    client.create_topic("t")
    client.create_topic("own", {"retention.ms": "7"})
    client.set("broker", "", "log.retention.ms", "5")
    assert _log_config(broker).retention_ms == 5
    assert _log_config(broker, "own").retention_ms == 7
    client.set("broker", "1", "log.retention.ms", "6")
    assert _log_config(broker).retention_ms == 6
    assert _inside(broker).config.log_retention_ms == 6


def _log_config(broker: Broker, topic: str = "t") -> LogConfig:
    partition = _inside(broker).partitions.get(topic, 0)
    assert partition is not None
    assert partition.config is partition.log.config
    return partition.config


def test_settings_outlast_a_restart(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path)
    with broker:
        with _client(broker) as client:
            client.create_topic("t", {"retention.ms": "7"})
            client.set("broker", "", "message.max.bytes", "5000")
            client.set("group", "g/..ü", "consumer.session.timeout.ms", "50000")
            client.set("metrics", "m", "interval.ms", "5000")
        broker.restart()
        with _client(broker) as client:
            assert client.value("topic", "t", "retention.ms") == "7"
            assert client.value("topic", "t", "max.message.bytes") == "5000"
            assert client.value("group", "g/..ü", "consumer.session.timeout.ms") == "50000"
            assert client.value("metrics", "m", "interval.ms") == "5000"
        assert _log_config(broker).max_message_bytes == 5000


def test_validation_alone_changes_nothing(client: ConfigClient) -> None:
    client.create_topic("t")
    assert client.alter("topic", "t", ("set", "retention.ms", "5"), validate_only=True).code == "NONE"
    assert client.value("topic", "t", "retention.ms") == "604800000"


def test_a_refusal_says_what_is_expected(client: ConfigClient) -> None:
    client.create_topic("t")
    outcome = client.set("topic", "t", "retention.sm", "5")
    assert (outcome.code, outcome.message) == (
        "INVALID_CONFIG",
        "Unknown topic config name: retention.sm; the nearest known one is retention.ms.",
    )
    outcome = client.set("broker", "", "no.such.property", "5")
    assert outcome.code == "INVALID_REQUEST"
    outcome = client.set("broker", "", "message.max.bytes", "many")
    assert outcome.message is not None and "message.max.bytes" in outcome.message and "'many'" in outcome.message


def test_a_password_is_never_shown(client: ConfigClient) -> None:
    for version in (1, 2, 3, 4):
        _, entries = client.describe("broker", "1", "ssl.keystore.password", version=version)
        entry = entries["ssl.keystore.password"]
        assert (entry.value, entry.is_sensitive) == (None, True)
        assert all(value is None for _, value, _ in entry.synonyms)


def test_documentation_is_there_when_asked_for(client: ConfigClient) -> None:
    client.create_topic("t")
    for kind, name in (("topic", "t"), ("broker", "1"), ("group", "g"), ("metrics", "m")):
        assert all(entry.doc for entry in client.describe(kind, name, doc=True)[1].values())
        assert not any(entry.doc for entry in client.describe(kind, name)[1].values())


def test_older_versions(client: ConfigClient) -> None:
    client.create_topic("t")
    assert client.alter("topic", "t", ("set", "retention.ms", "5"), version=0).code == "NONE"
    for version in (0, 1, 2):
        assert client.replace("topic", "t", {"retention.ms": str(version)}, version=version).code == "NONE"
        assert client.value("topic", "t", "retention.ms") == str(version)


def test_a_logger_can_be_made_talkative_and_quiet_again(client: ConfigClient) -> None:
    name = "ottla.config"
    try:
        assert client.set("logger", "1", name, "trace").code == "NONE"
        assert client.value("logger", "1", name) == "TRACE"
        assert logging.getLogger(name).isEnabledFor(logging.DEBUG)
        assert client.set("logger", "1", name, "CRITICAL").code == "NONE"
        assert client.value("logger", "1", name) == "FATAL"
        assert client.alter("logger", "1", ("delete", name, None)).code == "NONE"
        assert client.value("logger", "1", name) == client.value("logger", "1", "root")
    finally:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_changes_of_many_clients_are_all_kept(broker: Broker, client: ConfigClient) -> None:
    client.create_topic("t")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    settings = ["retention.ms", "segment.ms", "flush.ms", "max.message.bytes", "delete.retention.ms", "retention.bytes"]
    futures = []
    for name in settings:
        entry = ConfigEntry(name, "10", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[entry])
        futures += admin.incremental_alter_configs([resource]).values()
    for future in futures:
        future.result(10)
    _, entries = client.describe("topic", "t")
    assert sorted(one.name for one in entries.values() if one.source == 1) == sorted(settings)


def test_confluent_admin_describes_and_alters(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic("t", 1, 1, config={"cleanup.policy": "compact"})]).values():
        future.result(10)
    topic = ConfigResource(ResourceType.TOPIC, "t")
    (described,) = admin.describe_configs([topic]).values()
    entry = described.result(10)["cleanup.policy"]
    assert (entry.value, entry.source, entry.is_default) == ("compact", 1, False)
    topic.set_config("retention.ms", "99")
    with pytest.deprecated_call():
        (altered,) = admin.alter_configs([topic]).values()
    altered.result(10)
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")]).values()
    assert described.result(10)["retention.ms"].value == "99"
    assert described.result(10)["cleanup.policy"].value == "delete"


def test_creating_a_topic_tells_its_settings(broker: Broker) -> None:
    host, port = broker.bootstrap_servers.split(":")
    configs = [CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="5")]
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    with RawClient(host, int(port)) as raw:
        for validate_only in (True, False):
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=validate_only)
            (result,) = raw.call(request, 7).topics
            told = {one.name: (one.value, one.config_source) for one in result.configs}
            assert list(told) == sorted(told) and len(told) == 33
            assert (told["retention.ms"], told["segment.ms"]) == (("5", 1), ("604800000", 5))


def test_settings_of_a_group_stay_within_the_brokers_bounds(broker: Broker, client: ConfigClient) -> None:
    client.set("group", "g", "consumer.session.timeout.ms", "50000")
    assert _inside(broker).configs.group_config("g").consumer_session_timeout_ms == 50_000
    assert _inside(broker).configs.group_config("other").consumer_session_timeout_ms == 45_000
