"""Kafka's own kafka-configs sets, shows and removes quotas of Ottla."""

from __future__ import annotations

import subprocess

import pytest

from ottla.testing import Broker
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs
from tests.support.quotas import quotas
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.jvm


def _kafka_configs(broker: Broker, *arguments: str) -> str:
    tool = [*quick_java(), "-cp", class_path(require_kafka_libs()), "kafka.admin.ConfigCommand"]
    command = [*tool, "--bootstrap-server", broker.bootstrap_servers, *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def test_quotas_of_users_clients_and_addresses() -> None:
    require_kafka_libs()
    ada = ("--entity-type", "users", "--entity-name", "ada")
    both = (*ada, "--entity-type", "clients", "--entity-default")
    address = ("--entity-type", "ips", "--entity-name", "127.0.0.1")
    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        _kafka_configs(broker, "--alter", *ada, "--add-config", "producer_byte_rate=1024,request_percentage=50.5")
        _kafka_configs(broker, "--alter", *both, "--add-config", "consumer_byte_rate=2048")
        _kafka_configs(broker, "--alter", *address, "--add-config", "connection_creation_rate=100")
        assert quotas(client) == {
            (("user", "ada"),): {"producer_byte_rate": 1024, "request_percentage": 50.5},
            (("client-id", None), ("user", "ada")): {"consumer_byte_rate": 2048},
            (("ip", "127.0.0.1"),): {"connection_creation_rate": 100},
        }
        shown = _kafka_configs(broker, "--describe", *ada)
        assert "user-principal 'ada'" in shown and "producer_byte_rate=1024.0" in shown
        assert "the default client-id" in _kafka_configs(broker, "--describe", *both)
        _kafka_configs(broker, "--alter", *ada, "--delete-config", "producer_byte_rate,request_percentage")
        assert (("user", "ada"),) not in quotas(client)
