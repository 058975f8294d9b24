"""Kafka's own command-line tools for topics, offsets and the cluster, pointed at Ottla."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = [pytest.mark.jvm, pytest.mark.xdist_group("kafka-tools")]

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    require_kafka_libs()
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def tool(broker: Broker) -> Tool:
    """`tool("TopicCommand", "--list")`: what it prints."""
    start = quick_java("128m")
    start += ["-cp", class_path(require_kafka_libs())]

    def run(name: str, *arguments: str) -> str:
        command = [*start, f"org.apache.kafka.tools.{name}", "--bootstrap-server", broker.bootstrap_servers, *arguments]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        return outcome.stdout

    return run


def test_topics_from_birth_to_death(tool: Tool) -> None:
    tool("TopicCommand", "--create", "--topic", "j", "--partitions", "3", "--config", "retention.ms=-1")
    tool("TopicCommand", "--alter", "--topic", "j", "--partitions", "4")
    described = tool("TopicCommand", "--describe", "--topic", "j")
    assert "PartitionCount: 4" in described
    assert "Configs: retention.ms=-1" in described
    assert tool("GetOffsetShell", "--topic", "j", "--time", "latest").split() == [f"j:{index}:0" for index in range(4)]
    tool("TopicCommand", "--delete", "--topic", "j")
    assert "j" not in tool("TopicCommand", "--list").split()


def test_records_are_deleted(tool: Tool, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("records")
    kept = tmp_path / "offsets.json"
    kept.write_text(json.dumps({"version": 1, "partitions": [{"topic": "records", "partition": 0, "offset": 0}]}))
    assert "low_watermark: 0" in tool("DeleteRecordsCommand", "--offset-json-file", str(kept))


def test_the_cluster_is_described(tool: Tool, broker: Broker) -> None:
    broker.create_topic("described")
    assert '"partition":"described-0"' in tool("LogDirsCommand", "--describe", "--topic-list", "described")
    assert "LeaderId:               1" in tool("MetadataQuorumCommand", "describe", "--status")
    features = tool("FeatureCommand", "describe")
    assert "FinalizedVersionLevel: 4.3-IV0" in features
    assert tool("TransactionsCommand", "list").split()[0] == "TransactionalId"
    assert "No partition reassignments found" in tool("reassign.ReassignPartitionsCommand", "--list")
    tool("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
