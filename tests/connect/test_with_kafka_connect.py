"""Topics that Kafka Connect 4.3.1 has written are read by our worker, and the other way round: a cluster of workers can
be replaced by the other kind, with its connectors, states and offsets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.connect.conftest import MakeConnect
from tests.connect.test_connectors import eventually
from tests.support.connect_processes import KafkaConnect, ask

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.timeout(1200)]


def add(path: Path, first: int, last: int) -> None:
    with path.open("a") as file:
        file.write("".join(f"line {number}\n" for number in range(first, last)))


def is_running(url: str, name: str) -> bool:
    status, answer, _ = ask(url, "GET", f"/connectors/{name}/status")
    return status == 200 and [one["state"] for one in (answer["connector"], *answer["tasks"])] == ["RUNNING"] * 2


def test_a_cluster_moves_from_kafka_connect_to_ours_and_back(
    broker: Any, make_connect: MakeConnect, tmp_path: Path
) -> None:
    source, late, target = tmp_path / "in.txt", tmp_path / "late.txt", tmp_path / "out.txt"
    add(source, 0, 100)
    kafka = KafkaConnect(broker.bootstrap_servers, tmp_path)
    kafka.start()
    try:
        config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "moved", "tasks.max": "1"}
        eventually(
            lambda: ask(kafka.url, "PUT", "/connectors/src/config", config)[0], lambda status: status in (200, 201)
        )
        assert len(broker.records("moved", count=100, timeout_s=120)) == 100
        eventually(lambda: ask(kafka.url, "GET", "/connectors/src/offsets")[1]["offsets"], bool)
        eventually(lambda: ask(kafka.url, "PUT", "/connectors/src/pause")[0], lambda status: status == 202)
        kept = ask(kafka.url, "GET", "/connectors/src/config")[1]
        told = ask(kafka.url, "GET", "/connectors/src/offsets")[1]
    finally:
        kafka.close()

    ours = make_connect(broker.bootstrap_servers, **{"group.id": "connect"})
    assert ours.ask("GET", "/connectors") == (200, ["src"])
    assert ours.ask("GET", "/connectors/src/config") == (200, kept)
    assert ours.ask("GET", "/connectors/src/offsets") == (200, told)
    ours.wait_for("src", "PAUSED")
    assert ours.ask("PUT", "/connectors/src/resume")[0] == 202
    add(source, 100, 200)
    assert len(broker.records("moved", count=200, timeout_s=120)) == 200
    add(late, 200, 250)
    ours.create("late", connector_class="FileStreamSource", file=late, topic="moved")
    ours.create("snk", connector_class="FileStreamSink", file=target, topics="moved")
    assert len(broker.records("moved", count=250, timeout_s=120)) == 250
    eventually(lambda: target.exists() and len(target.read_text().splitlines()), lambda count: count == 250)
    ours.stop()

    kafka = KafkaConnect(broker.bootstrap_servers, tmp_path)
    kafka.start()
    try:
        names = eventually(lambda: ask(kafka.url, "GET", "/connectors")[1], lambda found: len(found) == 3)
        assert sorted(names) == ["late", "snk", "src"]
        for name in names:
            eventually(lambda name=name: is_running(kafka.url, name), bool)
        add(source, 250, 300)
        add(late, 300, 350)
        eventually(lambda: len(target.read_text().splitlines()), lambda count: count >= 350)
        time.sleep(2)
        assert sorted(target.read_text().splitlines()) == sorted(f"line {number}" for number in range(350))
        assert len(broker.records("moved", count=350)) == 350
    finally:
        kafka.close()
