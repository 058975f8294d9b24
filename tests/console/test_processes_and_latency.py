"""Pages of what takes time: a business process that is watched, and how long requests and readers take."""

from __future__ import annotations

import html
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.common.errors import OttlaError
from ottla.console.settings import ConsoleSettings
from ottla.console.web.console import Console
from ottla.testing import Broker
from tests.console.running import RunningConsole
from tests.console.test_pages import until

EVIL = "<script>alert(1)</script>"


def process_file(folder: Path, topic: str) -> Path:
    file = folder / "orders.toml"
    file.write_text(
        f'name = "orders"\nwithin = "1h"\n[[step]]\nname = "order"\ntopic = "{topic}-a"\nid = "key"\n'
        f'[[step]]\nname = "payment"\ntopic = "{topic}-b"\nid = "key"\nwithin = "10m"\n'
        f'[[step]]\nname = "shipping"\ntopic = "{topic}-c"\nid = "key"\nwithin = "10m"\n'
    )
    return file


def written(broker: Broker, topic: str) -> None:
    """Of 30 orders: two without any payment, one without payment that was shipped, three that were paid twice."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    began_ms = time.time_ns() // 1_000_000 - 3_600_000
    for number in range(30):
        key, paid = f"o-{number}", number not in (4, 5, 6)
        producer.produce(f"{topic}-a", b"{}", key=EVIL if number == 4 else key, timestamp=began_ms)
        for _ in range(2 if number in (10, 11, 12) else 1 if paid else 0):
            producer.produce(f"{topic}-b", b"{}", key=key, timestamp=began_ms + 1000)
        if paid or number == 6:
            producer.produce(f"{topic}-c", b"{}", key=key, timestamp=began_ms + 2000)
    producer.flush(60)


def test_a_process_is_watched_and_exactly_what_went_wrong_is_listed(broker: Broker, topic: str, tmp_path: Path) -> None:
    for step in "abc":
        broker.create_topic(f"{topic}-{step}", 2)
    written(broker, topic)
    files = (process_file(tmp_path, topic),)
    with RunningConsole(broker.bootstrap_servers, processes=files, masks=("other:x",)) as running:
        visitor = running.visitor()
        until(lambda: running.console.processes.all["orders"].report is not None)
        listed = visitor.get("/processes").text
        assert "order → payment → shipping" in listed and "trouble" in listed
        page = visitor.get("/processes/orders").text
        assert "<script>alert" not in page and EVIL in html.unescape(page)
        assert "6 instances in trouble" in page and "There are more" not in page
        for problem, count in (("stuck", 2), ("missing", 1), ("duplicate", 3), ("late", 0), ("out of order", 0)):
            shown = visitor.get("/processes/orders", params={"only": problem}).text
            assert f"{count} instance{'' if count == 1 else 's'} in trouble" in shown, problem
        assert "o-6" in visitor.get("/processes/orders?only=missing").text
        assert "/trace?topic=" in page and "did not come" in page and "2 times" in page
        assert visitor.get("/processes/nope").status_code == 404
        assert running.console.collector.snapshot is not None
        assert "ottla-process-orders" not in running.console.collector.snapshot.groups
    (few := tmp_path / "few.toml").write_text("cases_max = 3\n" + files[0].read_text())
    with RunningConsole(broker.bootstrap_servers, processes=(few,)) as running:
        until(lambda: running.console.processes.all["orders"].report is not None)
        page = running.visitor().get("/processes/orders").text
        assert "3 instances in trouble" in page and "There are more: the newest 3 are kept" in page
    masks = (f"{topic}-b:card",)
    with RunningConsole(broker.bootstrap_servers, processes=files, masks=masks) as running:
        until(lambda: running.console.processes.all["orders"].report is not None)
        page = running.visitor().get("/processes/orders").text
        assert "o-5" not in page and "•••" in page and "hidden from you" in page


def test_a_process_whose_topics_are_not_there_says_so_and_nothing_else_breaks(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    with RunningConsole(broker.bootstrap_servers, processes=(process_file(tmp_path, topic),)) as running:
        visitor = running.visitor()
        until(lambda: "does not exist" in visitor.get("/processes/orders").text)
        assert visitor.get("/").status_code == 200 and "does not exist" in visitor.get("/processes").text


def test_files_that_are_no_process_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match="cannot be read"):
        Console(ConsoleSettings("x:1", processes=(tmp_path / "nowhere.toml",)))
    file = process_file(tmp_path, "t")
    with pytest.raises(OttlaError, match="two files define"):
        Console(ConsoleSettings("x:1", processes=(file, file)))


def test_request_times_come_from_the_brokers_metrics() -> None:
    with Broker({"ottla.metrics.listen": "127.0.0.1:0"}) as measured:
        endpoint = measured.server.metrics
        assert endpoint is not None
        measured.create_topic("orders")
        urls = (endpoint.url, "http://127.0.0.1:1")
        with RunningConsole(measured.bootstrap_servers, metrics=urls, interval_s=0.2) as running:
            visitor = running.visitor()

            def is_plotted() -> bool:
                measured.produce("orders", b"x")
                page = visitor.get("/latency").text
                return "Time of Produce requests: p99 now" in page and 'class="line s1"' in page

            until(is_plotted)
            page = visitor.get("/latency").text
            assert "http://127.0.0.1:1" in page and "refused" in page and " ms</td>" in page
            assert "Event loop late by" in visitor.get("/").text
    with RunningConsole("127.0.0.1:1") as running:
        assert running.visitor().get("/latency").status_code == 503


def test_without_metrics_the_page_says_what_to_do(broker: Broker) -> None:
    with RunningConsole(broker.bootstrap_servers) as running:
        page = running.visitor().get("/latency").text
        assert "--metrics URL" in page and "From written to read" in page
