"""`ottla group lag --verdict` and `ottla monitor start`, on Ottla and on Apache Kafka."""

from __future__ import annotations

import json
import signal
import subprocess
import time

from confluent_kafka import Consumer, TopicPartition

from tests.cli.command import Cli
from tests.support.metrics_page import MetricsPage, get

_PATIENCE_S = 60.0


def _stuck(cli: Cli, topic: str, group: str) -> Consumer:
    """A member that has the partition and commits no further."""
    assert cli.bootstrap is not None
    settings = {"bootstrap.servers": cli.bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    deadline = time.monotonic() + _PATIENCE_S
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    return consumer


def test_a_group_that_gets_nowhere_is_judged(cli: Cli, name: str) -> None:
    cli.ok("topic", "create", name, "-p", "1")
    cli.ok("produce", name, "a", "b", "c", "-q")
    member = _stuck(cli, name, name)
    (found,) = cli.ok("group", "lag", name, "--verdict", "--interval", "0.2", "--output", "json").data
    member.close()
    assert (found["status"], found["lag"], found["members"]) == ("ERROR", 2, 1)
    assert found["worst"]["status"] == "STALL"
    assert "there is no group" in cli("group", "lag", "nobody-here", "--verdict", "--interval", "0.1").err


def test_verdict_and_watch_do_not_go_together(cli: Cli) -> None:
    assert "--verdict goes with neither" in cli.fails(2, "group", "lag", "--verdict", "-w")


def test_the_monitor_serves_until_it_is_stopped(cli: Cli, name: str) -> None:
    cli.ok("topic", "create", name, "-p", "1")
    cli.ok("produce", name, "a", "b", "c", "-q")
    member = _stuck(cli, name, name)
    arguments = ("monitor", "start", "--listen", "127.0.0.1:0", "--interval", "0.2", "--log-format", "json")
    monitor = cli.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert monitor.stdout is not None and monitor.stderr is not None
        url = monitor.stdout.readline().decode().removeprefix("ready ").strip()
        deadline = time.monotonic() + _PATIENCE_S
        labels = {"consumergroup": name, "status": "ERROR"}
        while not MetricsPage.at(f"{url}/metrics").value("kafka_consumergroup_status", **labels):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        group = json.loads(get(f"{url}/v1/groups/{name}")[1])
        assert (group["partitions"][0]["status"], group["lag"]) == ("STALL", 2)
        monitor.send_signal(signal.SIGTERM)
        said = monitor.stderr.read().decode().splitlines()
        assert monitor.wait(_PATIENCE_S) == 0
        assert any(json.loads(line)["message"] == f"group {name} is ERROR now" for line in said)
    finally:
        monitor.kill()
        monitor.wait()
        member.close()
