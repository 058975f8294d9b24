"""Pages of what stands beside the brokers: a registry, Kafka Connect, pipelines; and transactions, settings, users."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.console.pages.pipelines import _DRAWINGS_MAX, _drawing
from ottla.spark.pipeline.home import FAILED, Home, Status
from ottla.testing import Broker, Registry
from tests.console.running import RunningConsole
from tests.console.test_pages import found

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[Registry]:
    with Registry(broker.bootstrap_servers) as running:
        yield running


def test_schemas_are_registered_compared_and_used(broker: Broker, registry: Registry, topic: str) -> None:
    with RunningConsole(broker.bootstrap_servers, registry=registry.url) as running:
        visitor = running.visitor()
        subject = f"{topic}-value"
        made = visitor.post("/schemas", {"subject": subject, "schema": json.dumps(AVRO)})
        assert "is registered" in made.text
        wider = {**AVRO, "fields": [*AVRO["fields"], {"name": "vat", "type": "double", "default": 0}]}
        assert "is compatible" in visitor.post(f"/schemas/{subject}", {"schema": json.dumps(wider), "check": "1"}).text
        narrow = {**AVRO, "fields": [*AVRO["fields"], {"name": "must", "type": "string"}]}
        refused = visitor.post(f"/schemas/{subject}", {"schema": json.dumps(narrow)}).text
        assert "notice bad" in refused
        visitor.post(f"/schemas/{subject}", {"schema": json.dumps(wider)})
        page = visitor.get(f"/schemas/{subject}").text
        assert "<ins>" in page and "vat" in page
        broker.create_topic(topic, 1)
        value = json.dumps({"id": 7, "note": "hello", "vat": 0.5})
        visitor.post(f"/topics/{topic}/produce", {"value": value, "encoding": "schema"})
        raw = broker.records(topic, count=1)[0].value
        assert raw is not None and raw[:1] == b"\x00"
        rows, end = found(visitor, topic, where='value.note == "hello" and value.id == 7')
        assert end["matches"] == 1 and "hello" in rows
        assert found(visitor, topic, where="value.id == 8")[1]["matches"] == 0
        assert "is FULL" in visitor.post(f"/schemas/{subject}/level", {"level": "FULL"}).text
        assert "is deleted" in visitor.post(f"/schemas/{subject}/delete", {"confirm": subject}).text


def test_a_registry_that_is_gone_is_told_and_nothing_else_breaks(broker: Broker) -> None:
    with RunningConsole(broker.bootstrap_servers, registry="http://127.0.0.1:1") as running:
        page = running.visitor().get("/schemas")
        assert page.status_code == 200 and "no registry answers" in page.text


@contextmanager
def connect() -> Iterator[tuple[str, list[str]]]:
    """Kafka Connect's REST API with two connectors, one of which failed; and what it was asked."""
    asked: list[str] = []
    tasks = [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": "java.lang.Boom <b>x</b>\n\tat Here"}]
    info = {"config": {"connector.class": "JdbcSink", "connection.password": "s3cret", "topics": "orders"}}
    connectors = {
        "fine": {"status": {"connector": {"state": "RUNNING", "worker_id": "w"}, "tasks": [], "type": "source"}},
        "ill": {"status": {"connector": {"state": "RUNNING"}, "tasks": tasks, "type": "sink"}, "info": info},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"version": "4.3.1"} if self.path == "/" else connectors)

        def do_PUT(self) -> None:
            if not self.path.endswith("/validate"):
                asked.append(f"{self.command} {self.path}")
            self._answer(None)

        do_POST = do_PUT

        def _answer(self, tree: object) -> None:
            body = b"" if tree is None else json.dumps(tree).encode()
            self.send_response(202 if tree is None else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_connectors_are_shown_failures_first_and_controlled(broker: Broker) -> None:
    with connect() as (url, asked), RunningConsole(broker.bootstrap_servers, connect=(url,)) as running:
        visitor = running.visitor()
        page = visitor.get("/connectors").text
        assert page.index(">ill<") < page.index(">fine<") and "java.lang.Boom &lt;b&gt;" in page
        one = visitor.get("/connectors/ill").text
        assert "s3cret" not in one and "(hidden)" in one and "at Here" in one
        visitor.post("/connectors/ill/control", {"action": "pause"})
        visitor.post("/connectors/ill/control", {"action": "restart"})
        visitor.post("/connectors/ill/control", {"action": "restart-task", "task": "0"})
        assert asked == [
            "PUT /connectors/ill/pause",
            "POST /connectors/ill/restart?includeTasks=true&onlyFailed=false",
            "POST /connectors/ill/tasks/0/restart",
        ]
        assert "notice bad" in visitor.post("/connectors/ill/control", {"action": "explode"}).text
        assert visitor.get("/connectors/nope").status_code == 404


def test_pipelines_of_this_machine_are_shown_with_their_last_error(broker: Broker, tmp_path: Path) -> None:
    home = Home(tmp_path, "tally")
    with home.locked():
        home.write(Status("tally", file="tally.py", state=FAILED, rows_in=1234, problem="<b>a bad row</b>"))
    home.spark_log.write_text("old line\n" * 100_000)
    home.log("something <i>happened</i>")
    with RunningConsole(broker.bootstrap_servers, pipelines=tmp_path) as running:
        visitor = running.visitor()
        assert "&lt;b&gt;a bad row" in visitor.get("/pipelines").text
        page = visitor.get("/pipelines/tally").text
        assert "1,234" in page and "something &lt;i&gt;happened" in page and page.count("old line") < 100
        assert "is not running" in visitor.post("/pipelines/tally/stop").text
        assert visitor.get("/pipelines/tally/topology.svg").status_code == 404


def test_a_topology_is_drawn_from_the_file_of_an_application(broker: Broker, tmp_path: Path) -> None:
    example = next(Path(__file__).resolve().parents[2].glob("examples/streams/*.py"))
    home = Home(tmp_path, "words")
    with home.locked():
        home.write(Status("words", file=str(example)))
    with RunningConsole(broker.bootstrap_servers, pipelines=tmp_path) as running:
        answer = running.visitor().get("/pipelines/words/topology.svg")
        assert answer.status_code == 200 and answer.headers["content-type"] == "image/svg+xml", answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        for _ in range(_DRAWINGS_MAX):
            assert _drawing.acquire(timeout=60)
        assert running.visitor().get("/pipelines/words/topology.svg").status_code == 502
        for _ in range(_DRAWINGS_MAX):
            _drawing.release()


def test_open_transactions_are_shown_and_those_that_a_coordinator_knows_are_not_aborted(
    broker: Broker, console: RunningConsole, topic: str
) -> None:
    broker.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"t-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.flush(30)
    visitor = console.visitor()
    page = visitor.get("/transactions").text
    assert f"t-{topic}" in page and "Ongoing" in page and "hanging" not in page
    producer_id = page.split(f"{topic}-0</a>")[1].split('<td class="n">')[2].split("<")[0]
    fields = {"topic": topic, "partition": "0", "start": "0", "producer": producer_id}
    assert "is not hanging" in visitor.post("/transactions/abort", fields).text
    assert found(visitor, topic)[1]["matches"] == 0
    assert found(visitor, topic, isolation="all")[1]["matches"] == 1
    producer.abort_transaction(30)


def test_settings_of_brokers_have_words_and_can_be_changed(console: RunningConsole) -> None:
    visitor = console.visitor()
    assert "retention" in visitor.get("/configuration").text
    done = visitor.post("/brokers/1/settings", {"setting": "log.cleaner.threads", "value": "2"})
    assert "is changed" in done.text
    assert "notice bad" in visitor.post("/brokers/1/settings", {"setting": "log.cleaner.threads", "value": "x"}).text


def test_users_and_quotas_are_set_and_removed(console: RunningConsole) -> None:
    visitor = console.visitor()
    made = visitor.post("/access/users", {"user": "zoe", "password": "pw", "mechanism": "SCRAM-SHA-256"})
    assert "User zoe can log in" in made.text and "zoe" in visitor.get("/access").text
    assert "no authorizer" in visitor.get("/access").text
    visitor.post("/access/quotas", {"kind": "user", "name": "zoe", "quota": "producer_byte_rate", "value": "1000"})
    assert "producer_byte_rate=1000" in visitor.get("/access").text
    assert "cannot log in any more" in visitor.post("/access/users/delete", {"user": "zoe"}).text


def test_the_audit_trail_is_read_from_its_end(broker: Broker, tmp_path: Path) -> None:
    trail = tmp_path / "audit.log"
    lines = [json.dumps({"time": f"t{n}", "message": "login", "principal": f"<u>{n}", "n": n}) for n in range(5)]
    trail.write_text("\n".join([*lines, '{"cut']))
    with RunningConsole(broker.bootstrap_servers, audit_file=trail) as running:
        page = running.visitor().get("/audit").text
        assert page.index("&lt;u&gt;4") < page.index("&lt;u&gt;0") and "<u>" not in page
        assert ">Principal</th>" in page and ">Timestamp</th>" not in page, "no column of dashes"
        assert "There is nothing in it" in running.visitor().get("/audit?q=nowhere-at-all").text
