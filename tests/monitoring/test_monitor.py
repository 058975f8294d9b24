"""The monitor on a real broker: groups that read, stall, stop, rewind, and only have markers left."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.client.address import ClusterAddress
from ottla.monitoring.burrow import GroupStatus, Status
from ottla.monitoring.monitor import Monitor, MonitorSettings
from ottla.monitoring.sampling import ClusterSampler
from ottla.monitoring.service import MonitorService
from ottla.testing import Broker
from tests.support.metrics_page import MetricsPage, get

_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def _commit(broker: Broker, group: str, topic: str, offset: int) -> None:
    """As a consumer that comes and goes."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def _member(broker: Broker, group: str, topic: str, committed: int) -> Consumer:
    """One that lives, has the partition, and commits no further."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.05)
    consumer.commit(offsets=[TopicPartition(topic, 0, committed)], asynchronous=False)
    return consumer


def _looked(broker: Broker, times: int, between: Any = lambda number: None) -> Monitor:
    """Looks ten seconds apart, by a clock of its own."""
    monitor, sampler = Monitor(), ClusterSampler(ClusterAddress(broker.bootstrap_servers))
    for number in range(times):
        between(number)
        monitor.take(sampler.look(now_ms=number * 10_000))
    sampler.close()
    return monitor


def _statuses(monitor: Monitor, group: str) -> tuple[GroupStatus, list[Status]]:
    report = monitor.report.groups[group]
    return report.status, [one.verdict.status for one in report.partitions]


def test_groups_are_told_apart_by_what_they_do(broker: Broker) -> None:
    for topic in ("read", "stalled", "stopped", "rewound"):
        broker.create_topic(topic)
        broker.produce(topic, *([b"x"] * 100))
    stuck = _member(broker, "stalled", "stalled", 10)

    def between(number: int) -> None:
        _commit(broker, "reader", "read", 100)
        broker.produce("stalled", b"x")
        broker.produce("stopped", b"x")
        if number < 3:
            _commit(broker, "stopper", "stopped", 10 + number)
        _commit(broker, "rewinder", "rewound", 50 + number if number < 4 else number)

    monitor = _looked(broker, 8, between)
    stuck.close()
    assert _statuses(monitor, "reader") == (GroupStatus.OK, [Status.OK])
    assert _statuses(monitor, "stalled") == (GroupStatus.ERROR, [Status.STALL])
    assert _statuses(monitor, "stopper") == (GroupStatus.ERROR, [Status.STOP])
    assert _statuses(monitor, "rewinder") == (GroupStatus.ERROR, [Status.REWIND])
    report = monitor.report.groups["stalled"]
    assert (report.members, report.lag) == (1, 98)
    assert report.partitions[0].client_id is not None
    assert len(monitor.lag_history("stalled")) == 8


def test_a_group_before_nothing_but_a_marker_has_read_everything(broker: Broker) -> None:
    broker.create_topic("exactly")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    for is_committed in (True, False):
        producer.begin_transaction()
        producer.produce("exactly", b"x")
        producer.flush()
        if is_committed:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    member = _member(broker, "exact", "exactly", 1)  # behind it: a marker, an aborted record, another marker
    monitor = _looked(broker, 6)
    assert _statuses(monitor, "exact") == (GroupStatus.OK, [Status.OK])
    assert monitor.report.groups["exact"].lag == 0
    member.commit(offsets=[TopicPartition("exactly", 0, 0)], asynchronous=False)
    monitor = _looked(broker, 6)
    member.close()
    assert _statuses(monitor, "exact") == (GroupStatus.ERROR, [Status.STALL])


class _Hook(BaseHTTPRequestHandler):
    got: list[dict[str, Any]]
    came: threading.Event

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        self.came.set()

    def log_message(self, *_: object) -> None:
        """Quiet."""


async def test_the_service_tells_metrics_json_and_webhooks(broker: Broker) -> None:
    broker.create_topic("served")
    broker.produce("served", *([b"x"] * 5))
    member = await asyncio.to_thread(_member, broker, "served/group", "served", 2)
    _Hook.got, _Hook.came = [], threading.Event()
    receiver = HTTPServer(("127.0.0.1", 0), _Hook)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    settings = MonitorSettings(interval_s=0.1, window=5)
    hook = f"http://127.0.0.1:{receiver.server_port}/hook"
    service = MonitorService(ClusterAddress(broker.bootstrap_servers), "127.0.0.1", 0, settings, [hook])
    await service.start()
    try:
        while not any(told["name"] == "served/group" for told in list(_Hook.got)):
            assert await asyncio.to_thread(_Hook.came.wait, _PATIENCE_S)
            _Hook.came.clear()
        (told,) = [told for told in _Hook.got if told["name"] == "served/group"]
        assert (told["before"], told["after"]) == ("OK", "ERROR") and "STALL" in told["why"]
        assert (await asyncio.to_thread(get, f"{service.url}/health/ready"))[0] == 200
        page = await asyncio.to_thread(MetricsPage.at, f"{service.url}/metrics")
        labels = {"consumergroup": "served/group", "topic": "served", "partition": "0"}
        assert page.value("kafka_consumergroup_lag", **labels) == 3
        assert page.value("kafka_consumergroup_current_offset", **labels) == 2
        assert page.value("kafka_consumergroup_members", consumergroup="served/group") == 1
        assert page.value("kafka_consumergroup_status", consumergroup="served/group", status="ERROR") == 1
        assert page.value("kafka_brokers") == 1
        _, text = await asyncio.to_thread(get, f"{service.url}/v1/groups/served%2Fgroup")
        group = json.loads(text)
        assert (group["status"], group["lag"], group["partitions"][0]["status"]) == ("ERROR", 3, "STALL")
        assert group["lag_history"]
        _, text = await asyncio.to_thread(get, f"{service.url}/v1/groups")
        assert "served/group" in {line["group"] for line in json.loads(text)}
        _, text = await asyncio.to_thread(get, f"{service.url}/v1/cluster")
        assert json.loads(text)["under_replicated"]["pattern"] == "none"
        assert (await asyncio.to_thread(get, f"{service.url}/v1/groups/nobody"))[0] == 404
    finally:
        await service.stop()
        receiver.shutdown()
        receiver.server_close()
        await asyncio.to_thread(member.close)


def test_a_cluster_that_is_away_is_no_end_of_the_monitor() -> None:
    """What was known stays known, and it comes back."""
    with Broker() as broker:
        broker.create_topic("kept")
        broker.produce("kept", b"x")
        _commit(broker, "kept", "kept", 0)
        sampler, monitor = ClusterSampler(ClusterAddress(broker.bootstrap_servers)), Monitor()
        monitor.take(sampler.look())
        broker.restart()
        report = monitor.take(sampler.look())
        assert report.groups["kept"].lag == 1
        sampler.close()
