"""Kafka's own tools, which are Java's AdminClient, move partitions of a cluster of Ottla and elect leaders."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from ottla.testing.records import read_all
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs
from tests.support.trio import OttlaTrio, require

pytestmark = [pytest.mark.jvm, pytest.mark.slow]
Tool = Callable[..., str]
VALUES = [b"%d" % number for number in range(500)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaTrio]:
    require(OttlaTrio)
    require_kafka_libs()
    settings = {"zookeeper.session.timeout.ms": "3000", "auto.leader.rebalance.enable": "false"}
    with OttlaTrio(tmp_path_factory.mktemp("trio"), settings) as made:
        yield made


@pytest.fixture
def trio(running: OttlaTrio) -> Iterator[OttlaTrio]:
    """Whole again after each test."""
    yield running
    running.make_whole()


@pytest.fixture
def tool(trio: OttlaTrio, tmp_path: Path) -> Tool:
    """`tool("LeaderElectionCommand", "--election-type", "preferred", ...)`: what it prints."""
    start = quick_java("128m")
    start += ["-cp", class_path(require_kafka_libs())]

    def run(name: str, *arguments: str) -> str:
        command = [*start, f"org.apache.kafka.tools.{name}", "--bootstrap-server", trio.bootstrap, *arguments]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=tmp_path)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        return outcome.stdout

    return run


def made(trio: OttlaTrio, topic: str, replicas: list[int], **config: str) -> str:
    admin = trio.admin()
    settings = {name.replace("_", "."): value for name, value in config.items()}
    wanted = NewTopic(topic, 1, replica_assignment=[replicas], config=settings)
    admin.create_topics([wanted])[topic].result(60)
    return topic


def write(trio: OttlaTrio, topic: str, values: list[bytes] = VALUES) -> None:
    producer = Producer({"bootstrap.servers": trio.bootstrap, "enable.idempotence": True, "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(120) == 0


def values(trio: OttlaTrio, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(trio.bootstrap, topic, committed_only=False)]


def plan(folder: Path, topic: str, replicas: list[int]) -> str:
    file = folder / f"{topic}-{'-'.join(map(str, replicas))}.json"
    wanted = {"topic": topic, "partition": 0, "replicas": replicas}
    file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    return str(file)


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


REASSIGN = "reassign.ReassignPartitionsCommand"


def test_a_partition_is_moved(trio: OttlaTrio, tool: Tool, tmp_path: Path) -> None:
    topic = made(trio, "moved", [1, 2])
    write(trio, topic)
    file = plan(tmp_path, topic, [3, 1])
    assert "Successfully started partition reassignment for moved-0" in tool(
        REASSIGN, "--reassignment-json-file", file, "--execute"
    )
    until(
        lambda: (
            "Reassignment of partition moved-0 is completed."
            in tool(REASSIGN, "--reassignment-json-file", file, "--verify")
        ),
        "it is never complete",
    )
    found = trio.partitions(topic)[0]
    assert (list(found.replicas), set(found.isrs)) == ([3, 1], {3, 1})
    assert "No partition reassignments found" in tool(REASSIGN, "--list")
    assert values(trio, topic) == VALUES


def test_an_unknown_broker_is_refused(trio: OttlaTrio, tool: Tool, tmp_path: Path) -> None:
    topic = made(trio, "nowhere", [1, 2])
    with pytest.raises(AssertionError, match="Unknown broker id 9"):
        tool(REASSIGN, "--reassignment-json-file", plan(tmp_path, topic, [9, 1]), "--execute")
    assert list(trio.partitions(topic)[0].replicas) == [1, 2]


def test_the_preferred_leader_is_elected(trio: OttlaTrio, tool: Tool) -> None:
    topic = made(trio, "preferred", [2, 3, 1])
    trio.nodes[2].kill()
    until(lambda: trio.leader(topic) != 2, "the lead stays with a broker that is gone")
    trio.nodes[2].start()
    trio.await_in_sync()
    assert trio.leader(topic) != 2
    one = ("--topic", topic, "--partition", "0")
    assert "Successfully completed leader election (PREFERRED) for partitions preferred-0" in tool(
        "LeaderElectionCommand", "--election-type", "preferred", *one
    )
    assert trio.leader(topic) == 2
    assert "Valid replica already elected for partitions preferred-0" in tool(
        "LeaderElectionCommand", "--election-type", "preferred", *one
    )


def test_an_unclean_leader_is_elected_when_it_is_asked_for(trio: OttlaTrio, tool: Tool) -> None:
    """What only the lost one had is gone, as the tool says; nothing else is."""
    topic = made(trio, "unclean", [1, 2], min_insync_replicas="1")
    write(trio, topic)
    trio.nodes[2].kill()
    until(lambda: set(trio.partitions(topic)[0].isrs) == {1}, "it stays in sync")
    write(trio, topic, [b"alone"])
    trio.nodes[1].kill()
    trio.nodes[2].start()
    until(lambda: trio.partitions(topic)[0].leader == -1, "somebody leads who must not")
    told = tool("LeaderElectionCommand", "--election-type", "unclean", "--topic", topic, "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions unclean-0" in told
    assert trio.leader(topic) == 2
    assert values(trio, topic) == VALUES
