"""What was planted among a thousand orders is found, exactly that, over the wire; and once more after restarts."""

from __future__ import annotations

import json
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.testing import Broker
from ottla.tracing.process import ProcessReport, ProcessWatch, load_process, parse_process
from ottla.tracing.process.serving import ReportServer
from tests.cli.command import Cli
from tests.tracing.conftest import Sender
from tests.tracing.process.orders import EXPECTED, MINUTE_MS, ORDERS, PLANTED, process_toml

Topics = Callable[..., list[str]]


def _run_pipelines(send: Sender, names: list[str], began_ms: int, numbers: range) -> None:
    orders, payments, shipments = names

    def produce(
        topic: str, value: object, key: str | None, at_ms: int, headers: dict[str, bytes] | None = None
    ) -> None:
        send.producer.produce(topic, json.dumps(value), key, timestamp=at_ms, headers=headers or {})
        send.producer.poll(0)

    for number in numbers:
        name, at_ms = f"order-{number}", began_ms + number * 1000
        produce(orders, {"id": name, "html": "<script>"}, name, at_ms)
        if number in PLANTED.unpaid:
            continue
        paid_ms = at_ms + 2 * MINUTE_MS
        if number not in PLANTED.payment_gone:
            # Something else in the same topic, that is no payment.
            produce(payments, {"order": {"id": name}, "status": "asked"}, None, paid_ms - 1)
            for _ in range(2 if number in PLANTED.paid_twice else 1):
                produce(payments, {"order": {"id": name}, "status": "paid"}, None, paid_ms)
        if number in PLANTED.unshipped:
            continue
        shipped_ms = paid_ms + (90 if number in PLANTED.shipped_late else 30) * MINUTE_MS
        if number in PLANTED.shipped_before_paid:
            shipped_ms = paid_ms - MINUTE_MS
        produce(shipments, "x" * 10, "parcel", shipped_ms, {"order": name.encode()})
    assert send.producer.flush(60) == 0


def _found(report: ProcessReport) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for case in report.cases:
        for problem in case.problems:
            found.setdefault(problem, set()).add(int(case.id.decode().removeprefix("order-")))
    return found


def _is_exactly_what_was_planted(report: ProcessReport) -> None:
    assert _found(report) == EXPECTED
    assert {name: report.counts[name] for name in EXPECTED} == {name: len(own) for name, own in EXPECTED.items()}
    assert report.counts["instances"] == ORDERS
    assert report.counts["complete"] == ORDERS - len(frozenset().union(*EXPECTED.values()))
    assert report.counts["given up"] == report.counts["too late"] == 0


@pytest.mark.parametrize("began_h_ago", [3, 50])
def test_of_a_thousand_orders_exactly_the_planted_ones_are_found(
    cluster: str, topics: Topics, send: Sender, tmp_path: Path, began_h_ago: int
) -> None:
    """Both while they are remembered and when all were forgotten long ago."""
    names = topics("orders", "payments", "shipments", partitions=3)
    _run_pipelines(send, names, time.time_ns() // 1_000_000 - began_h_ago * 60 * MINUTE_MS, range(ORDERS))
    file = tmp_path / "process.toml"
    file.write_text(process_toml(*names))
    watch = ProcessWatch(ClientSettings(cluster), load_process(file), is_resumable=False)
    try:
        _is_exactly_what_was_planted(watch.round())
        _is_exactly_what_was_planted(watch.round())
    finally:
        watch.close()


def test_the_command_reports_once_and_says_by_its_status_that_something_is_wrong(
    cluster: str, topics: Topics, send: Sender, tmp_path: Path
) -> None:
    names = topics("orders", "payments", "shipments")
    _run_pipelines(send, names, time.time_ns() // 1_000_000 - 180 * MINUTE_MS, range(50))
    file = tmp_path / "process.toml"
    file.write_text(process_toml(*names))
    outcome = Cli(cluster)("trace", "watch", str(file), "--once")
    assert outcome.status == 3, outcome.err
    assert "order-17" in outcome.out and "stuck" in outcome.out and "<script>" not in outcome.out
    told = Cli(cluster)("trace", "watch", str(file), "--once", "--output", "json").data
    assert (told["counts"]["stuck"], told["counts"]["missing"], told["counts"]["duplicate"]) == (3, 4, 1)
    wrong = Cli(cluster)("trace", "watch", str(tmp_path / "none.toml"), "--once")
    assert wrong.status == 1 and wrong.err.count("\n") == 1


def test_a_watch_goes_on_where_another_one_ended(cluster: str, topics: Topics, send: Sender, tmp_path: Path) -> None:
    """Orders come in while one watch follows the other; time goes on by itself."""
    names = topics("orders", "payments", "shipments", partitions=2)
    file = tmp_path / "process.toml"
    file.write_text(process_toml(*names))
    began_ms = time.time_ns() // 1_000_000 - 600 * MINUTE_MS
    reports = []
    records = []
    for part in range(5):
        _run_pipelines(send, names, began_ms, range(part * 200, part * 200 + 200))
        # All of the shipments of the orders so far are in the past by then; the last round sees all forgotten.
        now_ms = began_ms + (part * 200 + 200) * 1000 + (150 if part < 4 else 590) * MINUTE_MS
        watch = ProcessWatch(ClientSettings(cluster), load_process(file), now_ms=lambda at_ms=now_ms: at_ms)
        try:
            reports.append(watch.round())
            records.append(watch.records)
        finally:
            watch.close()
    counts = reports[-1].counts
    assert {name: counts[name] for name in EXPECTED} == {name: len(own) for name, own in EXPECTED.items()}
    assert (counts["instances"], counts["too late"], counts["given up"]) == (ORDERS, 0, 0)


def test_a_watch_outlives_a_broker_that_restarts(tmp_path: Path) -> None:
    names = ["orders", "payments", "shipments"]
    began_ms = time.time_ns() // 1_000_000 - 180 * MINUTE_MS
    with Broker(data_dir=tmp_path / "data") as broker:
        for name in names:
            broker.create_topic(name, 2)
        process = parse_process(tomllib.loads(process_toml(*names)))
        watch = ProcessWatch(ClientSettings(broker.bootstrap_servers), process)
        _run_pipelines(Sender(broker.bootstrap_servers), names, began_ms, range(100))
        before = watch.round()
        broker.restart()
        _run_pipelines(Sender(broker.bootstrap_servers), names, began_ms, range(100, 300))
        after = watch.round()
        watch.close()
    assert (before.counts["instances"], after.counts["instances"]) == (100, 300)
    assert _found(after) == {
        name: {number for number in own if number < 300} for name, own in EXPECTED.items() if min(own) < 300
    }


def test_a_report_is_served_as_json_and_for_prometheus() -> None:
    def get(path: str) -> str:
        with urllib.request.urlopen(server.url + path, timeout=30) as answer:
            return str(answer.read().decode())

    report = ProcessReport("orders", 1_700_000_000_000, dict.fromkeys(ProcessReport.NAMES, 2), (), 7, {})
    with ReportServer("127.0.0.1", 0) as server:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            get("/")
        server.publish(report)
        assert json.loads(get("/"))["counts"]["out_of_order"] == 2
        assert 'ottla_process_instances{process="orders",verdict="stuck"} 2\n' in get("/metrics")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get("/other")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a b"}, "cannot be its name"),
        ({"steps": []}, "did you mean step"),
        ({"step": []}, "needs two steps"),
        ({"within": "soon"}, "is a time such as"),
        ({"within": None}, "nothing would ever be overdue"),
        ({"instances_max": 0}, "whole number above 0"),
        (
            {"step": [{"name": "a", "topic": "t", "id": "colour"}, {"name": "b", "topic": "t", "id": "key"}]},
            "followed by",
        ),
        ({"step": [{"name": "a", "topic": "t", "id": "key"}, {"name": "a", "topic": "t", "id": "key"}]}, "two steps"),
        ({"step": [{"name": "a", "topic": "t", "id": "key"}, {"name": "b", "id": "key"}]}, "needs a topic"),
    ],
)
def test_a_wrong_definition_is_told_in_a_sentence(change: dict[str, object], said: str) -> None:
    steps = [{"name": "a", "topic": "t", "id": "key"}, {"name": "b", "topic": "t", "id": "key"}]
    data = {"name": "p", "within": "1h", "step": steps, **change}
    with pytest.raises(OttlaError, match=said):
        parse_process({name: value for name, value in data.items() if value is not None})


def test_a_topic_that_is_not_there_is_named(cluster: str) -> None:
    process = parse_process(
        {
            "name": "p",
            "within": "1h",
            "step": [{"name": "a", "topic": "no-a", "id": "key"}, {"name": "b", "topic": "no-b", "id": "key"}],
        }
    )
    watch = ProcessWatch(ClientSettings(cluster), process)
    with pytest.raises(OttlaError, match="step 'a' in topic 'no-a'"):
        watch.round()
    watch.close()
