"""What a worker tells of its connectors, without Spark; and over HTTP, beside its REST API."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.connect.rounds.context import Progress
from ottla.connect.storage import statuses
from ottla.connect.worker import metrics as module
from ottla.connect.worker.metrics import OTHER, WorkerMetrics
from ottla.exposition.text import text_of
from tests.connect.conftest import MakeConnect
from tests.connect.test_connectors import eventually

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name.removeprefix("kafka_connect_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def told(metrics: WorkerMetrics) -> Samples:
    return samples(text_of(metrics.families(is_leader=True)).decode())


def of(name: str, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"connector": name, **more}.items()))


def test_counts_and_states_have_kafka_connects_names() -> None:
    metrics = WorkerMetrics()
    metrics.rebalanced(7)
    metrics.reported("snk", statuses.RUNNING, 2)
    for _ in range(2):
        metrics.progressed("snk", Progress(0.0, (), 50))
        rows = [{"read": 10, "sent": 8, "failed": 2, "skipped": 2, "dead_letters": 2}, {"read": 1, "sent": 1}]
        metrics.progressed("snk", Progress(0.5, rows, 3))
    metrics.reported("snk", statuses.FAILED, 2)
    found = told(metrics)
    assert found["sink_task_metrics_sink_record_read_total", of("snk", task="0")] == 20
    assert found["sink_task_metrics_sink_record_send_total", of("snk", task="1")] == 2
    assert found["task_error_metrics_deadletterqueue_produce_requests_total", of("snk", task="0")] == 4
    assert found["sink_task_metrics_sink_record_lag_max", of("snk")] == 3
    assert found["ottla_connect_rounds_total", of("snk")] == 2
    assert found["connector_metrics_status", of("snk", status="failed")] == 1
    assert found["connector_metrics_status", of("snk", status="running")] == 0
    assert found["connector_task_metrics_status", of("snk", task="1", status="failed")] == 1
    assert found["connect_worker_metrics_task_count", ()] == 2
    assert found["connect_worker_rebalance_metrics_completed_rebalances_total", ()] == 1
    assert found["connect_worker_rebalance_metrics_rebalancing", ()] == 0
    assert found["ottla_connect_failures_total", of("snk")] == 1
    metrics.forget("snk")
    assert not [key for key in told(metrics) if dict(key[1]).get("connector")]


def test_however_many_connectors_and_tasks_there_are_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTORS_MAX", 3)
    monkeypatch.setattr(module, "TASKS_MAX", 4)
    metrics = WorkerMetrics()
    for number in range(10):
        metrics.reported(f"c{number}", statuses.RUNNING, 1000)
        metrics.progressed(f"c{number}", Progress(0.1, [{"read": 1}] * 1000))
    found = told(metrics)
    read = {labels: value for (name, labels), value in found.items() if name.endswith("sink_record_read_total")}
    assert len(read) == 4 * 5 and sum(read.values()) == 10_000
    assert read[of(OTHER, task=OTHER)] == 7 * 996
    assert len(found) < 150


def test_a_worker_serves_them(broker: Any, make_connect: MakeConnect, tmp_path: Path) -> None:
    settings = {"group.id": "measured", "ottla.metrics.listen": "127.0.0.1:0"}
    settings |= {f"{one}.storage.topic": f"measured-{one}" for one in ("config", "offset", "status")}
    connect = make_connect(broker.bootstrap_servers, **settings)
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\nthree\n")
    connect.create("src", connector_class="FileStreamSource", file=source, topic="measured-lines")
    connect.create("snk", connector_class="FileStreamSink", file=target, topics="measured-lines")

    def look() -> Samples:
        with urllib.request.urlopen(f"{connect.server.metrics_url}/metrics", timeout=30) as answer:
            return samples(answer.read().decode())

    def is_there(found: Samples) -> bool:
        return found.get(("sink_task_metrics_sink_record_send_total", of("snk", task="0"))) == 3

    found = eventually(look, is_there)
    assert found["source_task_metrics_source_record_write_total", of("src", task="0")] == 3
    assert found["connector_metrics_status", of("src", status="running")] == 1
    assert found["sink_task_metrics_sink_record_lag_max", of("snk")] == 0
    assert found["ottla_connect_leader", ()] == 1
    with urllib.request.urlopen(f"{connect.server.metrics_url}/health/ready", timeout=30) as answer:
        assert answer.status == 200
