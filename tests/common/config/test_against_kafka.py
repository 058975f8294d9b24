"""Our tables against what Kafka's own classes say: names, types, defaults, scopes, synonyms."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.common.config import BrokerConfig, ClientMetricsConfig, GroupConfig, Scope, Setting, TopicConfig
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = pytest.mark.jvm

# Where we differ on purpose: our default, and Kafka's.
OTHER_DEFAULTS = {
    "node.id": ("1", "<required>"),  # one broker needs no number
    # A fixed buffer keeps the kernel from tuning it: docs/decisions/0007.
    "socket.send.buffer.bytes": ("-1", "102400"),
    "socket.receive.buffer.bytes": ("-1", "102400"),
    "log.dir": ("/tmp/ottla-logs", "/tmp/kafka-logs"),  # a Kafka on the same machine must not find our data
    "controller.listener.names": ("", "<required>"),
    "process.roles": ("<null>", "<required>"),
}
# Listeners cannot be changed while the broker runs.
READ_ONLY_HERE = {"listeners", "listener.security.protocol.map"}


class Key(NamedTuple):
    type: str
    default: str
    validator: str
    importance: str
    visibility: str


class Facts(NamedTuple):
    keys: dict[str, dict[str, Key]]
    pairs: dict[str, list[tuple[str, str]]]


@pytest.fixture(scope="module")
def kafka() -> Facts:
    libs = require_kafka_libs()
    program = Path(__file__).with_name("KafkaConfigFacts.java")
    command = [*quick_java(), "-cp", class_path(libs), str(program)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    facts = Facts(defaultdict(dict), defaultdict(list))
    for line in output.splitlines():
        kind, name, *rest = line.split("\t")
        if len(rest) == 1:
            facts.pairs[kind].append((name, rest[0]))
        else:
            facts.keys[kind][name] = Key(*rest)
    return facts


def _described(settings: Mapping[str, Setting[Any]]) -> dict[str, tuple[str, str, bool]]:
    return {
        name: (one.kind.name, "<null>" if one.default_text is None else one.default_text, one.internal)
        for name, one in settings.items()
    }


def _kafkas(keys: Mapping[str, Key]) -> dict[str, tuple[str, str, bool]]:
    return {name: (key.type, key.default, key.visibility == "internal") for name, key in keys.items()}


def test_every_broker_property_is_known_with_its_type_and_default(kafka: Facts) -> None:
    expected = _kafkas(kafka.keys["broker"] | kafka.keys["dynamic-only"])
    for name, (ours, theirs) in OTHER_DEFAULTS.items():
        kind, default, internal = expected[name]
        assert default == theirs
        expected[name] = (kind, ours, internal)
    # Kafka knew ZooKeeper until 3.9.
    # The two others are its authorizer's.
    not_kafkas = ("ottla.", "zookeeper.", "super.users", "allow.everyone.if.no.acl.found")
    ours = {name: setting for name, setting in BrokerConfig.known().items() if not name.startswith(not_kafkas)}
    # The order of the pairs in this map is that of a Java hash map.
    protocols = "listener.security.protocol.map"
    assert sorted(expected.pop(protocols)[1].split(",")) == sorted(str(ours.pop(protocols).default).split(","))
    assert _described(ours) == expected


@pytest.mark.parametrize(
    ("kind", "config"), [("topic", TopicConfig), ("group", GroupConfig), ("client-metrics", ClientMetricsConfig)]
)
def test_topic_group_and_metrics_settings(kafka: Facts, kind: str, config: type[TopicConfig]) -> None:
    assert _described(config.definitions()) == _kafkas(kafka.keys[kind])


def test_what_may_change_while_the_broker_runs(kafka: Facts) -> None:
    known = {name: one for name, one in BrokerConfig.known().items() if not name.startswith("ottla.")}
    ours = {name: one.scope.value for name, one in known.items() if one.scope is not Scope.READ_ONLY}
    theirs = {name: mode for name, mode in kafka.pairs["mode"] if name not in READ_ONLY_HERE}
    assert ours == theirs


@pytest.mark.parametrize(("kind", "config"), [("topic-synonym", TopicConfig), ("group-synonym", GroupConfig)])
def test_where_a_setting_gets_its_value_from(kafka: Facts, kind: str, config: type[TopicConfig]) -> None:
    ours = [(name, synonym.name) for name, one in config.definitions().items() for synonym in one.synonyms]
    assert sorted(ours) == sorted(kafka.pairs[kind])


def test_least_and_most_values_are_kafkas(kafka: Facts) -> None:
    """A value just outside Kafka's range is refused by the settings we act on, one just inside is taken."""
    acted_on = {name: one for name, one in BrokerConfig.known().items() if one.acted_on}
    for kind, settings in (
        ("broker", acted_on),
        ("topic", TopicConfig.definitions()),
        ("group", GroupConfig.definitions()),
    ):
        for name, key in kafka.keys[kind].items():
            low, _, high = key.validator.strip("[]").partition(",...")
            if name not in settings or key.type not in ("INT", "LONG", "SHORT") or not low.lstrip("-").isdecimal():
                continue
            accepts = settings[name].check.accepts
            assert accepts(int(low)) and not accepts(int(low) - 1), name
            if high.lstrip(",").isdecimal():
                assert accepts(int(high.lstrip(","))) and not accepts(int(high.lstrip(",")) + 1), name
