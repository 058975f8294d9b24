"""`ottla quota` on a cluster that has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    require_kafka_libs()
    folder: Path = tmp_path_factory.mktemp("kafka")
    with KafkaPeer(folder, {}) as running:
        yield Cli(running.bootstrap)


@pytest.mark.jvm
@pytest.mark.slow
def test_quotas_are_set_shown_and_removed(kafka: Cli) -> None:
    assert kafka.ok("quota", "describe").out == "no quotas are set\n"
    kafka.ok("quota", "set", "--user", "ada", "producer_byte_rate=10M", "consumer_byte_rate=1000")
    kafka.ok("quota", "set", "--user", "ada", "--client-id-default", "request_percentage=12.5")
    kafka.ok("quota", "set", "--ip", "10.0.0.7", "connection_creation_rate=5")
    found = kafka.ok("quota", "describe", "--user", "ada", "--output", "json").data
    assert {
        "entity": {"user": "ada"},
        "quotas": {"consumer_byte_rate": 1000.0, "producer_byte_rate": 10485760.0},
    } in found
    assert {"entity": {"user": "ada", "client-id": None}, "quotas": {"request_percentage": 12.5}} in found
    assert len(kafka.ok("quota", "describe", "--user", "ada", "--exact", "--output", "json").data) == 1
    assert "every other client id" in kafka.ok("quota", "describe").out
    kafka.ok("quota", "remove", "--user", "ada", "consumer_byte_rate")
    kafka.ok("quota", "remove", "--user", "ada", "--all")
    assert kafka.ok("quota", "describe", "--user", "ada", "--exact").out == "no quotas are set\n"
    assert "no quotas are set for user ada" in kafka.fails(1, "quota", "remove", "--user", "ada", "--all")
    assert "ottla: " in kafka.fails(1, "quota", "set", "--ip", "10.0.0.7", "producer_byte_rate=1")


@pytest.mark.jvm
@pytest.mark.slow
def test_users_of_apache_kafka_are_managed_too(kafka: Cli) -> None:
    kafka.ok("user", "create", "ada", "--password-file", "-", "--mechanism", "SCRAM-SHA-256", stdin="secret\n")
    assert kafka.ok("user", "list", "--output", "json").data == [
        {"user": "ada", "mechanisms": [{"name": "SCRAM-SHA-256", "iterations": 8192}]}
    ]
    kafka.ok("user", "delete", "ada", "-y")
    assert kafka.ok("user", "list").out == "there are no users\n"
    assert "has no authorizer" in kafka.fails(1, "acl", "list")
