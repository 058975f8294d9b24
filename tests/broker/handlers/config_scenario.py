"""One conversation about configuration that Kafka and Ottla must answer alike.

`transcript(client)` is run against both. Messages are left out, since the words are ours; codes, values, sources,
synonyms, types and flags are what clients act on. `RECORDED` is what Kafka 4.3.1 answered.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.config_client import ConfigClient, Described

RECORDED = Path(__file__).with_name("config_scenario.kafka-4.3.1.json")
# Enough for Kafka on a busy machine.
KAFKA_PAUSE_S = 0.15
# Static settings of the broker in the scenario.
PROPERTIES = {"compression.type": "lz4", "log.segment.bytes": "5000000", "node.id": "1"}


def transcript(client: ConfigClient, pause_s: float = 0.0) -> list[Any]:
    """Kafka's broker hears of a change a little after it is answered: it needs a pause after each step."""
    answers: list[Any] = []
    for part in (_topics, _brokers, _groups, _metrics, _resources):
        for step in part(client):
            answers.append(json.loads(json.dumps(step)))
            time.sleep(pause_s)
    return answers


def _entry(one: Described) -> list[Any]:
    return [one.name, one.value, one.source, one.read_only, one.is_sensitive, one.type, one.synonyms]


def _shown(client: ConfigClient, kind: str | int, name: str, *keys: str) -> list[Any]:
    outcome, entries = client.describe(kind, name, *keys)
    return [f"describe {kind} {name!r}", outcome.code, sorted(_entry(one) for one in entries.values())]


def _topics(client: ConfigClient) -> Iterator[list[Any]]:
    for configs in (
        {"unheard.of": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": "-5"},
        {"segment.bytes": "1000"},
        {"cleanup.policy": "shred"},
        {"cleanup.policy": "delete,,compact"},
        {"cleanup.policy": None},
        {"remote.storage.enable": "true"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"leader.replication.throttled.replicas": "1-2"},
    ):
        yield ["create", configs, client.create_topic("refused", configs).code]
    yield ["create", client.create_topic("twice", {"cleanup.policy": "delete,delete"}).code]
    yield _shown(client, "topic", "twice", "cleanup.policy")
    yield ["create", client.create_topic("t", {"flush.messages": "7"}).code]
    # A new Kafka cluster sets min.insync.replicas, and Kafka does not tell that the others come from log.roll.hours.
    inherited = ("segment.ms", "segment.jitter.ms", "retention.ms", "flush.ms")
    outcome, entries = client.describe("topic", "t")
    entries.pop("min.insync.replicas")
    yield ["inherited", [(name, entries[name].value, entries.pop(name).source) for name in inherited]]
    yield ["all", outcome.code, sorted(_entry(one) for one in entries.values())]
    for name in ("unknown", "bad/name", ""):
        yield _shown(client, "topic", name)
    yield _shown(client, "topic", "t", "retention.bytes", "unheard.of")
    for changes in (
        [("set", "retention.bytes", "5")],
        [("set", "retention.bytes", " 12 ")],
        [("set", "retention.bytes", "x")],
        [("set", "retention.bytes", "")],
        [("set", "retention.bytes", None)],
        [("set", "unheard.of", "1")],
        [("delete", "unheard.of", None)],
        [("append", "retention.bytes", "1")],
        [("subtract", "retention.bytes", "1")],
        [("set", "retention.bytes", "1"), ("set", "retention.bytes", "2")],
        [("set", "retention.bytes", "77"), ("set", "segment.ms", "x")],
        [("append", "cleanup.policy", "compact")],
        [("append", "cleanup.policy", "compact")],
        [("append", "cleanup.policy", "shred")],
        [("subtract", "cleanup.policy", "delete")],
        [("subtract", "cleanup.policy", "compact")],
        [("delete", "cleanup.policy", None)],
        [("delete", "retention.bytes", None)],
        [],
    ):
        yield ["alter t", changes, client.alter("topic", "t", *changes).code]
        yield _shown(client, "topic", "t", "retention.bytes", "cleanup.policy")
    for name in ("unknown", "bad/name", ""):
        yield ["alter", name, client.set("topic", name, "retention.bytes", "1").code]
    yield ["validate", client.alter("topic", "t", ("set", "retention.bytes", "9"), validate_only=True).code]
    yield ["validate", client.alter("topic", "t", ("set", "retention.bytes", "x"), validate_only=True).code]
    yield _shown(client, "topic", "t", "retention.bytes")
    yield from _replaced(client)


def _replaced(client: ConfigClient) -> Iterator[list[Any]]:
    for configs in (
        {"retention.bytes": "9", "max.message.bytes": "900"},
        {"max.message.bytes": "901"},
        {"max.message.bytes": None},
        {"unheard.of": "1"},
        {"max.message.bytes": "x"},
        {},
    ):
        yield ["replace t", configs, client.replace("topic", "t", configs).code]
        _, entries = client.describe("topic", "t")
        yield ["own", sorted(one.name for one in entries.values() if one.source == 1)]
    yield ["replace unknown", client.replace("topic", "unknown", {"retention.bytes": "1"}).code]
    yield ["validate", client.replace("topic", "t", {"retention.bytes": "1"}, validate_only=True).code]
    yield _shown(client, "topic", "t", "retention.bytes")


def _brokers(client: ConfigClient) -> Iterator[list[Any]]:
    for name, key, value in (
        ("", "log.retention.ms", "12345"),
        ("1", "log.retention.ms", "23456"),
        ("", "message.max.bytes", "2000000"),
        ("", "message.max.bytes", "x"),
        ("", "message.max.bytes", "-4"),
        ("", "num.partitions", "3"),
        ("1", "node.id", "3"),
        ("1", "log.retention.hours", "3"),
        ("", "cordoned.log.dirs", ""),
        ("99", "log.retention.ms", "1"),
        ("abc", "log.retention.ms", "1"),
        ("1", "ssl.keystore.password", "secret"),
        ("", "num.io.threads", "9"),
    ):
        yield ["set broker", name, key, value, client.set("broker", name, key, value).code]
    dynamic = ("log.retention.ms", "message.max.bytes", "log.cleanup.policy")
    yield _shown(client, "broker", "", *dynamic)
    yield _shown(client, "broker", "1", "message.max.bytes", "num.partitions", "ssl.keystore.password")
    for topic_key in ("max.message.bytes", "segment.bytes", "compression.type"):
        yield _shown(client, "topic", "t", topic_key)
    _, topic = client.describe("topic", "t", "retention.ms")
    yield ["inherited", topic["retention.ms"].value, topic["retention.ms"].source, topic["retention.ms"].synonyms[:2]]
    for name in ("99", "abc"):
        yield _shown(client, "broker", name)
    yield ["append", client.alter("broker", "", ("append", "log.cleanup.policy", "compact")).code]
    yield _shown(client, "topic", "t", "cleanup.policy")
    yield ["validate", client.alter("broker", "", ("set", "message.max.bytes", "3000000"), validate_only=True).code]
    for key in dynamic:
        yield ["delete", client.alter("broker", "", ("delete", key, None)).code]
    yield ["delete", client.alter("broker", "1", ("delete", "log.retention.ms", None)).code]
    yield _shown(client, "broker", "1", "log.retention.ms", "message.max.bytes", "log.cleanup.policy")


def _groups(client: ConfigClient) -> Iterator[list[Any]]:
    yield _shown(client, "group", "g")
    for name, key, value in (
        ("g", "consumer.session.timeout.ms", "50000"),
        ("g", "consumer.session.timeout.ms", "1"),
        ("g", "consumer.session.timeout.ms", "99999999"),
        ("g", "consumer.heartbeat.interval.ms", "99999999"),
        ("g", "streams.num.standby.replicas", "3"),
        ("g", "share.auto.offset.reset", "by_duration:PT1H"),
        ("g", "share.auto.offset.reset", "someday"),
        ("g", "unheard.of", "1"),
        ("", "consumer.session.timeout.ms", "50000"),
    ):
        yield ["set group", name, key, value, client.set("group", name, key, value).code]
    yield _shown(client, "group", "g", "consumer.session.timeout.ms", "share.auto.offset.reset")
    yield ["replace", client.replace("group", "g", {"consumer.heartbeat.interval.ms": "6000"}).code]
    yield _shown(client, "group", "g", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")


def _metrics(client: ConfigClient) -> Iterator[list[Any]]:
    yield _shown(client, "metrics", "m")
    yield _shown(client, "metrics", "")
    for name, key, value in (
        ("m", "interval.ms", "5000"),
        ("m", "metrics", "*"),
        ("m", "match", "client_id=a.*,client_source_port=7"),
        ("m", "match", "shoe_size=44"),
        ("m", "match", "client_id=["),
        ("m", "unheard.of", "1"),
        ("", "metrics", "*"),
    ):
        yield ["set metrics", name, key, value, client.set("metrics", name, key, value).code]
    yield _shown(client, "metrics", "m")


def _resources(client: ConfigClient) -> Iterator[list[Any]]:
    for kind in (0, 3, 64):
        yield _shown(client, kind, "x")
        yield ["set", kind, client.set(kind, "x", "a", "1").code]
    yield ["set logger", client.set("logger", "1", "root", "SHOUT").code]
    yield ["set logger", client.set("logger", "1", "no.such.logger", "INFO").code]
    yield ["set logger", client.set("logger", "2", "root", "INFO").code]
    yield ["set logger", client.alter("logger", "1", ("delete", "root", None)).code]
    yield ["set logger", client.alter("logger", "1", ("append", "root", "INFO")).code]
    yield ["set logger", client.set("logger", "1", "root", "WARN").code]
    yield _shown(client, "logger", "1", "root")
    yield _shown(client, "logger", "2")
    for types in ((), (2,), (4,), (8,), (16,), (32,), (0,), (3,), (16, 16)):
        code, found = client.list_resources(types)
        yield ["list", types, code, sorted(found)]
    yield ["list v0", client.list_resources((), version=0)]
