"""The broker's configuration: defaults, text to values, mistakes, layers."""

from __future__ import annotations

import pytest

from ottla.common.config import BrokerConfig, InvalidValue, Source, parse_properties
from ottla.common.errors import OttlaError

# What Kafka 4 ships as config/server.properties, settings only.
STOCK_KAFKA_4 = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_without_properties_everything_has_its_default() -> None:
    config = BrokerConfig.load({})
    assert config.num_partitions == 1
    assert config.auto_create_topics_enable is True
    assert config.message_max_bytes == 1_048_588
    assert config.log_retention_ms is None
    assert config.log_cleanup_policy == ("delete",)
    assert config.warnings == ()


def test_a_stock_kafka_4_file_loads_with_one_warning_and_without_the_controller_listener() -> None:
    config = BrokerConfig.load(parse_properties(STOCK_KAFKA_4))
    assert [(e.name, e.port, e.advertised_host) for e in config.endpoints] == [("PLAINTEXT", 9092, "localhost")]
    assert config.data_dirs == ("/tmp/kraft-combined-logs",)
    assert config.node_id == 1
    assert len(config.warnings) == 1
    assert "process.roles" in config.warnings[0]
    assert "num.network.threads" in config.warnings[0]


def test_an_unknown_name_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(OttlaError, match=r"log\.retenton\.ms; the nearest known one is log\.retention\.ms"):
        BrokerConfig.load({"log.retenton.ms": "1"})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", "many", "whole number of 32 bits"),
        ("num.partitions", "1_000", "whole number of 32 bits"),
        ("num.partitions", "2147483648", "whole number of 32 bits"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "between 0 and 1"),
        ("log.cleanup.policy", "shred", "compact, delete"),
        ("compression.type", "brotli", "zstd"),
    ],
)
def test_a_wrong_value_is_an_error_with_name_value_and_what_is_expected(name: str, text: str, expected: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        BrokerConfig.load({name: text})
    assert all(part in str(caught.value) for part in (name, text, expected))


def test_a_removed_property_gets_a_helpful_sentence() -> None:
    config = BrokerConfig.load({"zookeeper.sync.time.ms": "2000", "port": "9092"})
    assert len(config.warnings) == 2
    assert config.warnings[1] == "port has no effect: use listeners and advertised.listeners."


def test_properties_of_listeners_and_plug_ins_are_accepted_with_the_warning() -> None:
    config = BrokerConfig.load({"listener.name.client.ssl.engine.factory.class": "f", "confluent.x": "1"})
    assert "confluent.x" in config.warnings[0] and "ssl.engine.factory.class" in config.warnings[0]


def test_a_listener_may_have_settings_of_its_own() -> None:
    config = BrokerConfig.load({"ssl.client.auth": "requested", "listener.name.inside.ssl.client.auth": "required"})
    assert config.of_listener("INSIDE", "ssl.client.auth") == "required"
    assert config.of_listener("OUTSIDE", "ssl.client.auth") == "requested"
    with pytest.raises(OttlaError, match=r"ssl\.client\.auth: expected one of none, requested, required"):
        BrokerConfig.load({"listener.name.inside.ssl.client.auth": "maybe"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("authorizer.class.name", "com.example.Authorizer"),
        ("create.topic.policy.class.name", "com.example.OnlyGoodTopics"),
        ("alter.config.policy.class.name", "com.example.OnlyGoodSettings"),
    ],
)
def test_a_guard_that_cannot_be_set_up_stops_the_start(name: str, text: str) -> None:
    with pytest.raises(OttlaError, match=name):
        BrokerConfig.load({name: text})


def test_broker_id_stands_in_for_node_id() -> None:
    assert BrokerConfig.load({"broker.id": "7"}).node_id == 7
    assert BrokerConfig.load({"broker.id": "7", "node.id": "7"}).node_id == 7
    with pytest.raises(OttlaError, match=r"give only node\.id"):
        BrokerConfig.load({"broker.id": "7", "node.id": "8"})


def test_data_dirs_prefer_log_dirs_over_log_dir() -> None:
    assert BrokerConfig.load({"log.dir": "/a"}).data_dirs == ("/a",)
    assert BrokerConfig.load({"log.dir": "/a", "log.dirs": "/b, /c"}).data_dirs == ("/b", "/c")
    assert BrokerConfig.load({"log.dirs": "/a,/a"}).data_dirs == ("/a",)
    for wrong in ("", "/a,,/b"):
        with pytest.raises(OttlaError, match=r"log\.dirs"):
            BrokerConfig.load({"log.dirs": wrong})


def test_a_setting_cannot_be_assigned() -> None:
    with pytest.raises(AttributeError):
        BrokerConfig.load({}).num_partitions = 3  # type: ignore[misc]


def test_dynamic_layers_win_over_static_and_the_broker_over_the_cluster() -> None:
    config = BrokerConfig.load({"log.retention.ms": "1000"})
    config.reconfigure({"log.retention.ms": "2000"}, {})
    assert config.log_retention_ms == 2000
    config.reconfigure({"log.retention.ms": "2000"}, {"log.retention.ms": "3000"})
    assert config.log_retention_ms == 3000
    assert [(value.text, value.source) for value in config.explain("log.retention.ms")] == [
        ("3000", Source.DYNAMIC_BROKER_CONFIG),
        ("2000", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("1000", Source.STATIC_BROKER_CONFIG),
    ]
    config.reconfigure({}, {})
    assert config.log_retention_ms == 1000


def test_listeners_hear_the_names_that_changed() -> None:
    config = BrokerConfig.load({})
    heard: list[frozenset[str]] = []
    config.on_change(heard.append)
    config.reconfigure({"message.max.bytes": "5000", "log.preallocate": "false"}, {})
    config.reconfigure({"message.max.bytes": "5000"}, {})
    assert heard == [{"message.max.bytes"}]


def test_a_wrong_dynamic_value_changes_nothing() -> None:
    config = BrokerConfig.load({})
    with pytest.raises(InvalidValue):
        config.reconfigure({"num.network.threads": "4", "message.max.bytes": "-1"}, {})
    assert config.value("num.network.threads") == 3
    assert list(config.layer(Source.DYNAMIC_DEFAULT_BROKER_CONFIG)) == []


def test_group_timeouts_must_be_in_order() -> None:
    with pytest.raises(OttlaError, match=r"group\.consumer\.session\.timeout\.ms must lie between"):
        BrokerConfig.load({"group.consumer.session.timeout.ms": "70000"})
