"""Kafka's own kafka-reassign-partitions at a cluster of Ottla: it moves under a throttle, and takes that away."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs
from tests.support.trio import OttlaTrio, require

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.xdist_group("trio")]


def _reassign(bootstrap: str, *arguments: str) -> str:
    tool = [
        *quick_java(),
        "-cp",
        class_path(require_kafka_libs()),
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    ]
    command = [*tool, "--bootstrap-server", bootstrap, *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.mark.timeout(900)
def test_partitions_are_moved_under_a_throttle(tmp_path: Path) -> None:
    require(OttlaTrio)
    require_kafka_libs()
    with OttlaTrio(tmp_path / "trio", {"auto.leader.rebalance.enable": "false"}) as trio:
        cli = Cli(trio.bootstrap)
        cli.ok("topic", "create", "orders", "-r", "2")
        cli.ok("partition", "move", "orders:0", "--to", "1,2", "--wait", "60")
        cli.ok("produce", "orders", "-q", stdin="".join(f"{number}\n" for number in range(500)))
        plan = tmp_path / "plan.json"
        wanted = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1]}]}
        plan.write_text(json.dumps(wanted))
        arguments = ("--reassignment-json-file", str(plan))
        said = _reassign(trio.bootstrap, *arguments, "--execute", "--throttle", "1000000")
        assert "limit was set to 1000000 B/s" in said
        assert "Successfully started partition reassignment" in said
        assert _settings(cli, "topic", "orders") == {
            "leader.replication.throttled.replicas": "0:1,0:2",
            "follower.replication.throttled.replicas": "0:3",
        }
        assert _settings(cli, "broker", "3")["follower.replication.throttled.rate"] == "1000000"
        deadline = time.monotonic() + 300
        while "is completed" not in (said := _reassign(trio.bootstrap, *arguments, "--verify")):
            assert time.monotonic() < deadline, said
        assert _settings(cli, "topic", "orders") == _settings(cli, "broker", "3") == {}
        ((described),) = cli.ok("topic", "describe", "orders", "--output", "json").data
        assert described["partitions"][0]["replicas"] == [3, 1]


@pytest.mark.timeout(900)
def test_a_move_is_cancelled(tmp_path: Path) -> None:
    """So slow that it never ends by itself: what one fetch may have is copied, then a thousand bytes per second."""
    require(OttlaTrio)
    require_kafka_libs()
    with OttlaTrio(tmp_path / "trio", {"auto.leader.rebalance.enable": "false"}) as trio:
        cli = Cli(trio.bootstrap)
        cli.ok("topic", "create", "orders", "-r", "2")
        cli.ok("partition", "move", "orders:0", "--to", "1,2", "--wait", "60")
        cli.ok("produce", "orders", "-q", stdin=f"{'x' * 1000}\n" * 5000)
        plan = tmp_path / "plan.json"
        wanted = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1]}]}
        plan.write_text(json.dumps(wanted))
        arguments = ("--reassignment-json-file", str(plan))
        _reassign(trio.bootstrap, *arguments, "--execute", "--throttle", "1000")
        assert "orders-0" in _reassign(trio.bootstrap, "--list")
        said = _reassign(trio.bootstrap, *arguments, "--cancel")
        assert "Successfully cancelled partition reassignment for: orders-0" in said
        assert "No partition reassignments found" in _reassign(trio.bootstrap, "--list")
        ((described),) = cli.ok("topic", "describe", "orders", "--output", "json").data
        assert described["partitions"][0]["replicas"] == [1, 2]
        assert _settings(cli, "topic", "orders") == _settings(cli, "broker", "3") == {}
        said = _reassign(trio.bootstrap, *arguments, "--cancel")
        assert "None of the specified partition reassignments are active" in said


def _settings(cli: Cli, kind: str, name: str) -> dict[str, str]:
    entries = cli.ok("config", "get", kind, name, "--output", "json").data
    return {one["name"]: one["value"] for one in entries if "throttled" in one["name"] and one["source"] == kind}
