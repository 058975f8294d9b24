"""Alert rules and the dashboard: their tests, the names they use, and a real Prometheus that sees things go wrong."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.client.address import ClusterAddress
from ottla.monitoring.monitor import MonitorSettings
from ottla.monitoring.service import MonitorService
from ottla.testing import Broker
from tests.support.brokers import OttlaProcess
from tests.support.metrics_page import MetricsPage
from tests.support.process import free_ports
from tests.support.prometheus import Prometheus, promtool, why_no_prometheus
from tests.support.small_disk import fill, small_tmpfs
from tests.support.trio import IDS, OttlaTrio, require

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "ottla-alerts.yml"
RULE_TESTS = DEPLOY / "prometheus" / "ottla-alerts-test.yml"
DASHBOARD = DEPLOY / "grafana" / "ottla.json"
PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"

needs_prometheus = pytest.mark.skipif(why_no_prometheus() is not None, reason=why_no_prometheus() or "")
_METRIC = re.compile(r"\b(?:kafka|ottla|process)_[a-z_]+\b")
_FIRED = re.compile(r"alertname: (\w+)\n\s+exp_alerts:\n(\s+- exp_labels)?")
_ALERT = re.compile(r"- alert: (\w+)")


def _alerts() -> list[str]:
    return _ALERT.findall(RULES.read_text())


@needs_prometheus
def test_every_alert_fires_when_it_should_and_not_before() -> None:
    checked = promtool("check", "rules", str(RULES))
    assert checked.returncode == 0, checked.stderr
    tested = promtool("test", "rules", str(RULE_TESTS))
    assert tested.returncode == 0, tested.stdout + tested.stderr
    checked = promtool("check", "config", str(RULES.parent / "prometheus.yml"))
    assert checked.returncode == 0, checked.stderr


def test_every_alert_has_a_test_and_a_paragraph() -> None:
    fired = {
        name
        for name, expected in re.findall(
            r"alertname: (\w+)\n\s+exp_alerts:\n(\s+- exp_labels)?", RULE_TESTS.read_text()
        )
        if expected
    }
    assert fired == set(_alerts())
    explained = set(re.findall(r"^### (\w+)", PAGE.read_text(), flags=re.MULTILINE))
    assert set(_alerts()) <= explained


@pytest.fixture(scope="module")
def known_names() -> Iterator[set[str]]:
    """All that a broker and the monitor tell, after somebody has used the broker."""
    with Broker({"ottla.metrics.listen": "127.0.0.1:0"}) as broker:
        broker.create_topic("t")
        broker.produce("t", b"x")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        consumer.close()
        endpoint = broker.server.metrics
        assert endpoint is not None
        of_broker = MetricsPage.at(f"{endpoint.url}/metrics").declared
    monitor = MonitorService(ClusterAddress("nowhere:1"), "127.0.0.1", 0, MonitorSettings())
    of_monitor = MetricsPage(monitor._text().decode()).declared
    yield of_broker | of_monitor


@pytest.mark.parametrize("file", [RULES, DASHBOARD], ids=["rules", "dashboard"])
def test_only_metrics_are_asked_for_that_exist(file: Path, known_names: set[str]) -> None:
    if file is DASHBOARD:
        board = json.loads(file.read_text())
        expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    else:
        expressions = re.findall(r"expr: (?:>-\n)?((?:.+\n)(?:          .+\n)*)", file.read_text())
    asked = {name for text in expressions for name in _METRIC.findall(text)}
    assert len(asked) > 15
    assert asked - known_names == set()


@needs_prometheus
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_real_prometheus_sees_a_broker_die_a_group_stall_and_a_disk_fill(tmp_path: Path) -> None:
    require(OttlaTrio)
    ports = free_ports(4)
    trio = OttlaTrio(tmp_path / "trio", {"zookeeper.session.timeout.ms": "3000"})
    alone = OttlaProcess(tmp_path / "alone", {"ottla.metrics.listen": f"127.0.0.1:{ports[3]}"})
    for one, port in zip(IDS, ports, strict=False):
        node = trio.nodes[one]
        assert isinstance(node, OttlaProcess)
        node.properties["ottla.metrics.listen"] = f"127.0.0.1:{port}"
    with small_tmpfs(tmp_path / "small", "64m") as small, trio:
        alone.data_dir = small / "data"
        settings = MonitorSettings(interval_s=0.5, window=5)
        monitor = MonitorService(ClusterAddress(trio.bootstrap), "127.0.0.1", 0, settings)
        await monitor.start()
        jobs = {
            "ottla": [f"127.0.0.1:{port}" for port in ports],
            "ottla-monitor": [monitor.url.removeprefix("http://")],
        }
        try:
            await asyncio.to_thread(alone.start)
            await asyncio.to_thread(_watch, tmp_path / "prometheus", jobs, trio, alone, small)
        finally:
            await monitor.stop()
            alone.close()


def _watch(folder: Path, jobs: dict[str, list[str]], trio: OttlaTrio, alone: OttlaProcess, small: Path) -> None:
    trio.create("watched", 3)
    producer = Producer({"bootstrap.servers": trio.bootstrap, "acks": "all"})
    for number in range(30):
        producer.produce("watched", b"x", partition=number % 3)
    assert producer.flush(60) == 0
    with Prometheus(folder, jobs, RULES) as prometheus:
        prometheus.await_value("sum(up)", 5)
        names = {labels["alertname"] for labels in prometheus.firing()}
        assert not names & {"BrokerDown", "ConsumerGroupInError", "LogDirectoryFull", "ReplicasMissing"}, names
        _let_a_group_stall(trio)
        prometheus.await_alert("ConsumerGroupInError", lambda labels: labels["consumergroup"] == "stuck")
        trio.nodes[2].kill()
        prometheus.await_alert("BrokerDown", lambda labels: labels["instance"] == jobs["ottla"][1])
        prometheus.await_alert("ReplicasMissing", lambda labels: labels["replica"] == "2")
        _write_to_a_full_disk(alone, small)
        prometheus.await_alert("LogDirectoryFull", lambda labels: labels["logDirectory"].startswith(str(small)))


def _let_a_group_stall(trio: OttlaTrio) -> None:
    """It commits, the same offset at each look, then goes: what it has not read stays."""
    settings = {"bootstrap.servers": trio.bootstrap, "group.id": "stuck", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.subscribe(["watched"])
    deadline = time.monotonic() + 60
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("watched", index, 1) for index in range(3)], asynchronous=False)
    looks_end = time.monotonic() + 5
    while time.monotonic() < looks_end:
        consumer.poll(0.1)
    consumer.close()


def _write_to_a_full_disk(alone: OttlaProcess, small: Path) -> None:
    fill(small)
    refused = Producer({"bootstrap.servers": alone.bootstrap, "message.timeout.ms": 5_000})
    for _ in range(50):
        refused.produce("full", b"x" * 10_000)
    refused.flush(60)
