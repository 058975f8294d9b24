"""Kafka's own command-line tools, by their main classes: what an operator types works here too."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.foreign.clients import AgentClient, Client, Sent
from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.support.kafka_jars import class_path, require_kafka_libs
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.jvm, pytest.mark.xdist_group("foreign")]
TOOLS = "org.apache.kafka.tools"
Tool = Callable[..., str]


@pytest.fixture
def tool(broker: BrokerProcess, java: AgentClient) -> Tool:
    """`tool("TopicCommand", "--list")`: its output; the bootstrap server is added, and it must exit with 0."""

    def run(name: str, *arguments: str, stdin: str = "", status: int = 0) -> str:
        full = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
        connected = ["--bootstrap-server", broker.bootstrap, *arguments]
        done = java.agent.call("tool", main=full, arguments=connected, stdin=stdin)
        assert done["status"] == status, done["output"]
        return str(done["output"])

    return run


def test_topics_are_created_listed_described_altered_and_deleted(tool: Tool, name: str) -> None:
    create = ["--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=60000"]
    assert f"Created topic {name}." in tool("TopicCommand", *create)
    assert name in tool("TopicCommand", "--list").split()
    described = eventually(
        lambda: tool("TopicCommand", "--describe", "--topic", name), lambda told: "PartitionCount: 3" in told
    )
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=60000" in described
    assert described.count("Leader: 1") == 3
    assert "already exists" in tool("TopicCommand", *create, status=1)
    tool("TopicCommand", "--alter", "--topic", name, "--partitions", "4")
    eventually(lambda: tool("TopicCommand", "--describe", "--topic", name), lambda told: "PartitionCount: 4" in told)
    tool("TopicCommand", "--delete", "--topic", name)
    eventually(lambda: tool("TopicCommand", "--list").split(), lambda names: name not in names)


def test_the_console_producer_writes_what_the_console_consumer_prints(
    tool: Tool, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name, 2)
    reader = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    tool("ConsoleProducer", "--topic", name, *reader, stdin="a:one\nb:two\nc:three\n")
    printer = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]
    told = tool(
        *("consumer.ConsoleConsumer", "--topic", name, "--from-beginning", "--max-messages", "3"),
        *("--timeout-ms", "20000", "--group", f"{name}-group", *printer),
    )
    assert sorted(line for line in told.splitlines() if line[1:2] == ":") == ["a:one", "b:two", "c:three"]


def test_groups_are_listed_described_reset_and_deleted(
    tool: Tool, broker: BrokerProcess, clients: Callable[[str], Client], java: AgentClient, name: str
) -> None:
    command = "consumer.group.ConsumerGroupCommand"
    create_topic(broker, name)
    clients("confluent").produce(broker.bootstrap, name, [Sent(None, b"x")] * 10)
    java.join(broker.bootstrap, name, name, [name], client_id="worker")

    def row() -> list[str]:
        told = tool(command, "--describe", "--group", name)
        return next((line.split() for line in told.splitlines() if line.startswith(f"{name} ")), [])

    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
    found = eventually(row, lambda line: line[2:6] == ["0", "10", "10", "0"])
    assert found[-1] == "worker"
    assert "Stable" in tool(command, "--describe", "--group", name, "--state")
    assert "worker" in tool(command, "--describe", "--group", name, "--members", "--verbose")
    java.leave(name)
    assert name in tool(command, "--list").split()
    tool(command, "--reset-offsets", "--group", name, "--topic", name, "--to-offset", "4", "--execute")
    assert row()[3:6] == ["4", "10", "6"]
    tool(command, "--delete", "--group", name)
    assert name not in tool(command, "--list").split()


def test_settings_are_described_and_altered(tool: Tool, broker: BrokerProcess, name: str) -> None:
    command = "kafka.admin.ConfigCommand"
    topic = ["--entity-type", "topics", "--entity-name", create_topic(broker, name)]
    tool(command, *topic, "--alter", "--add-config", "retention.ms=12345,cleanup.policy=[compact,delete]")
    told = eventually(lambda: tool(command, *topic, "--describe"), lambda told: "retention.ms=12345" in told)
    assert "cleanup.policy=compact,delete" in told
    assert "DYNAMIC_TOPIC_CONFIG" in told
    tool(command, *topic, "--alter", "--delete-config", "retention.ms")
    eventually(lambda: tool(command, *topic, "--describe"), lambda told: "retention.ms=12345" not in told)
    assert "max.message.bytes=1048588" in tool(command, *topic, "--describe", "--all")
    one_broker = ["--entity-type", "brokers", "--entity-name", "1"]
    tool(command, *one_broker, "--alter", "--add-config", "log.cleaner.backoff.ms=250")
    eventually(lambda: tool(command, *one_broker, "--describe"), lambda told: "log.cleaner.backoff.ms=250" in told)
    tool(command, *one_broker, "--alter", "--delete-config", "log.cleaner.backoff.ms")


def test_offsets_are_shown_and_records_deleted(
    tool: Tool, broker: BrokerProcess, clients: Callable[[str], Client], name: str, tmp_path: Path
) -> None:
    create_topic(broker, name, 2)
    clients("confluent").produce(broker.bootstrap, name, [Sent(None, b"x", partition=1)] * 8)
    assert f"{name}:0:0\n{name}:1:8" in tool("GetOffsetShell", "--topic", name)
    orders = tmp_path / "delete.json"
    orders.write_text(json.dumps({"partitions": [{"topic": name, "partition": 1, "offset": 5}], "version": 1}))
    assert "low_watermark: 5" in tool("DeleteRecordsCommand", "--offset-json-file", str(orders))
    assert f"{name}:1:5" in tool("GetOffsetShell", "--topic", name, "--time", "earliest")


def test_the_cluster_its_folders_features_and_versions_are_shown(
    tool: Tool, broker: BrokerProcess, clients: Callable[[str], Client], name: str
) -> None:
    create_topic(broker, name)
    clients("confluent").produce(broker.bootstrap, name, [Sent(None, bytes(3000))])
    told = tool("LogDirsCommand", "--describe", "--topic-list", name)
    (logged,) = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    (partition,) = logged["brokers"][0]["logDirs"][0]["partitions"]
    assert partition["partition"] == f"{name}-0"
    assert partition["size"] > 3000
    assert f"{broker.bootstrap} (id: 1" in tool("BrokerApiVersionsCommand")
    assert "Feature: group.version" in tool("FeatureCommand", "describe")


def test_the_verifiable_producer_and_consumer_agree(
    broker: BrokerProcess, java: AgentClient, tool: Tool, name: str
) -> None:
    create_topic(broker, name)
    # In a JVM of its own: it sends what it has left when the JVM ends.
    told = subprocess.run(
        [
            *("java", "-XX:TieredStopAtLevel=1", "-cp", class_path(require_kafka_libs())),
            *(f"{TOOLS}.VerifiableProducer", "--bootstrap-server", broker.bootstrap),
            *("--topic", name, "--max-messages", "50", "--throughput", "-1"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    events = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    sent = [one for one in events if one["name"] == "producer_send_success"]
    assert [one["offset"] for one in sent] == list(range(50))
    told = tool("VerifiableConsumer", "--topic", name, "--group-id", name, "--max-messages", "50")
    events = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    consumed = sum(one["count"] for one in events if one["name"] == "records_consumed")
    assert consumed == 50
    assert any(one["name"] == "offsets_committed" and one["success"] for one in events)
