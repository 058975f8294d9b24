"""`ottla config` and `ottla cluster`."""

from __future__ import annotations

import threading

from ottla.testing import Broker
from tests.cli.command import Cli
from tests.support.process import free_ports


def test_topic_settings_are_set_shown_and_unset(cli: Cli, topic: str) -> None:
    assert "nothing is set on topic" in cli.ok("config", "get", "topic", topic).out
    said = cli.ok("config", "set", "topic", topic, "retention.ms=3600000", "cleanup.policy=compact").out
    assert said == f"set on topic {topic}: retention.ms=3600000, cleanup.policy=compact\n"
    assert [line.split() for line in cli.ok("config", "get", "topic", topic).lines[1:]] == [
        ["cleanup.policy", "compact", "topic"],
        ["retention.ms", "3600000", "(1", "h)", "topic"],
    ]
    cli.ok("config", "unset", "topic", topic, "retention.ms")
    [only] = cli.ok("config", "get", "topic", topic, "--output", "json").data
    assert only == {
        "name": "cleanup.policy",
        "value": "compact",
        "source": "topic",
        "read_only": False,
        "sensitive": False,
    }
    everything = cli.ok("config", "get", "topic", topic, "--all", "--output", "json").data
    assert {"segment.bytes", "max.message.bytes", "cleanup.policy"} <= {one["name"] for one in everything}
    [named] = cli.ok("config", "get", "topic", topic, "segment.bytes", "--output", "json").data
    assert (named["value"], named["source"]) == ("1073741824", "default")


def test_settings_that_are_wrong_are_explained(cli: Cli, topic: str) -> None:
    assert "did you mean 'retention.ms'?" in cli.fails(1, "config", "get", "topic", topic, "retention.mss")
    assert "did you mean 'retention.ms'?" in cli.fails(1, "config", "set", "topic", topic, "retention.mss=5")
    assert "retention.ms" in cli.fails(1, "config", "set", "topic", topic, "retention.ms=soon")
    assert "there is no topic" in cli.fails(1, "config", "get", "topic", f"{topic}-x")
    assert "there is no broker 77" in cli.fails(1, "config", "get", "broker", "77")
    assert "is not a broker" in cli.fails(1, "config", "get", "broker", "first")


def test_a_dry_run_only_checks(cli: Cli, topic: str) -> None:
    assert "would set" in cli.ok("config", "set", "topic", topic, "retention.ms=5", "--dry-run").out
    assert "retention.ms" in cli.fails(1, "config", "set", "topic", topic, "retention.ms=x", "--dry-run")
    assert cli.ok("config", "get", "topic", topic, "--output", "json").data == []


def test_broker_settings(cli: Cli) -> None:
    cli.ok("config", "set", "broker", "1", "log.cleaner.threads=2")
    found = {one["name"]: one for one in cli.ok("config", "get", "broker", "1", "--output", "json").data}
    assert (found["log.cleaner.threads"]["value"], found["log.cleaner.threads"]["source"]) == ("2", "broker")
    assert found["node.id" if "node.id" in found else "listeners"]["source"] == "file"
    cli.ok("config", "unset", "broker", "1", "log.cleaner.threads")
    [back] = cli.ok("config", "get", "broker", "1", "log.cleaner.threads", "--output", "json").data
    assert (back["value"], back["source"]) == ("1", "default")


def test_group_settings(cli: Cli, name: str) -> None:
    cli.ok("config", "set", "group", name, "consumer.session.timeout.ms=50000")
    [found] = cli.ok("config", "get", "group", name, "--output", "json").data
    assert (found["name"], found["value"], found["source"]) == ("consumer.session.timeout.ms", "50000", "group")


def test_cluster_info(cli: Cli, topic: str) -> None:
    info = cli.ok("cluster", "info", "--output", "json").data
    host, _, port = cli.bootstrap.rpartition(":") if cli.bootstrap else ("", "", "")
    assert info["brokers"] == [{"id": 1, "host": host, "port": int(port), "rack": None}]
    assert info["controller"] == 1
    assert len(info["cluster_id"]) == 22
    assert info["topics"] >= 1
    assert info["partitions"] >= 2
    shown = cli.ok("cluster", "info").out
    assert "BROKER" in shown
    assert cli.bootstrap is not None
    assert cli.bootstrap in shown


def test_cluster_health(cli: Cli, topic: str) -> None:
    health = cli.ok("cluster", "health", "--output", "json").data
    assert health["healthy"] is True
    assert health["brokers"] == [1]
    assert health["leaderless_partitions"] == []
    (log_dir,) = health["log_dirs"]
    assert (log_dir["broker"], log_dir["problem"]) == (1, None)
    assert 0 < log_dir["usable_bytes"] <= log_dir["total_bytes"]
    assert health["log_dirs_unknown"] == {}
    assert "healthy" in cli.ok("cluster", "health").out


def test_health_can_wait_for_a_broker_that_is_not_up_yet() -> None:
    port = free_ports(1)[0]
    broker = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    timer = threading.Timer(1.5, broker.start)
    timer.start()
    try:
        assert "healthy" in Cli(f"127.0.0.1:{port}").ok("cluster", "health", "--wait", "30").out
    finally:
        timer.join()
        broker.stop()
