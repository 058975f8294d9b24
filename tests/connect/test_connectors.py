"""Connectors from end to end, on a worker in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

PATIENCE_S = 120.0
JSON = {"value_converter": "org.apache.kafka.connect.json.JsonConverter", "value_converter_schemas_enable": "false"}


def eventually(look: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    deadline_s = time.monotonic() + PATIENCE_S
    while not wanted(found := look()):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.1)
    return found


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.parquet")):
        if not path.name.startswith("."):
            found += pq.read_table(path).to_pylist()
    return found


def test_rows_of_a_csv_file_come_to_parquet_files_once(broker: Any, connect: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lines = [f'{number},"name, {number}",{number / 4}' for number in range(500)]
    (source / "a.csv").write_text("id,name,amount\n" + "\n".join(lines[:300]) + "\n")
    common = {"columns_types": "id:int64, amount:double", "csv_header": "true"}
    connect.create(
        "csv",
        connector_class="FilesSource",
        path=source,
        format="csv",
        topic="csv-rows",
        key_column="id",
        **common,
        **JSON,
    )
    connect.create(
        "parquet",
        connector_class="FilesSink",
        path=target,
        format="parquet",
        topics="csv-rows",
        rotate_interval_ms=200,
        include_metadata="true",
        **JSON,
    )
    eventually(lambda: len(rows_of(target)), lambda count: count >= 300)
    (source / "b.csv").write_text("id,name,amount\n" + "\n".join(lines[300:]) + "\n")
    rows = eventually(lambda: rows_of(target), lambda rows: len(rows) >= 500)
    assert sorted((row["id"], row["name"], row["amount"]) for row in rows) == [
        (number, f"name, {number}", number / 4) for number in range(500)
    ]
    status, answer = connect.ask("GET", "/connectors/csv/offsets")
    assert status == 200
    assert {Path(row["partition"]["file"]).name for row in answer["offsets"]} == {"a.csv", "b.csv"}
    # The consumer group of the sink shows no lag.
    eventually(
        lambda: connect.ask("GET", "/connectors/parquet/offsets")[1]["offsets"][0]["offset"]["kafka_offset"],
        lambda offset: offset >= 500,
    )
    for name in ("csv", "parquet"):
        assert connect.ask("DELETE", f"/connectors/{name}")[0] == 204


def test_made_up_records_have_an_end_and_are_there_once(broker: Any, connect: Any) -> None:
    connect.create("made", connector_class="DataGenerator", topic="made", count=750, rate=0, tasks_max=2, **JSON)
    records = broker.records("made", count=750, timeout_s=PATIENCE_S)
    assert sorted(json.loads(record.value)["order_id"] for record in records) == list(range(750))
    assert len(connect.wait_for("made", "RUNNING")["tasks"]) == 2
    connect.ask("DELETE", "/connectors/made")


class Service(ThreadingHTTPServer):
    """Refuses values with `bad` in them, and is away when it is told to be."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: list[Any] = []
        self.is_away = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/in"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        service = self.server
        assert isinstance(service, Service)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 503 if service.is_away else 400 if "bad" in json.dumps(body) else 200
        if status == 200:
            service.taken += body
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.shutdown()
    running.server_close()


def test_a_bad_record_is_found_among_others_and_an_outage_is_none(broker: Any, connect: Any, service: Service) -> None:
    broker.create_topic("to-web")
    for number in range(100):
        broker.produce("to-web", {"n": number, "is": "bad" if number in (17, 63) else "good"}, key=f"k{number}")
    connect.create(
        "web",
        connector_class="HttpSink",
        topics="to-web",
        http_url=service.url,
        batch_records=50,
        errors_tolerance="all",
        errors_deadletterqueue_topic_name="web-dead",
        errors_deadletterqueue_topic_replication_factor=1,
        errors_deadletterqueue_context_headers_enable="true",
        **JSON,
    )
    dead = broker.records("web-dead", count=2, timeout_s=PATIENCE_S)
    assert [json.loads(record.value)["n"] for record in dead] == [17, 63]
    told = {name: (value or b"").decode() for name, value in dead[0].headers.items()}
    assert told["__connect.errors.offset"] == "17"
    assert told["__connect.errors.stage"] == "TASK_PUT"
    assert told["__connect.errors.connector.name"] == "web"
    assert "400" in told["__connect.errors.exception.message"]
    taken = eventually(lambda: {row["n"] for row in service.taken}, lambda seen: len(seen) == 98)
    assert taken == set(range(100)) - {17, 63}

    service.is_away = True
    broker.produce("to-web", {"n": 100, "is": "good"})
    status = connect.wait_for("web", "FAILED")
    first, _, rest = status["connector"]["trace"].partition("\n")
    assert "answers 503" in first and "Traceback" in rest
    service.is_away = False
    eventually(lambda: {row["n"] for row in service.taken}, lambda seen: 100 in seen)
    connect.wait_for("web", "RUNNING")
    assert len(broker.records("web-dead", count=2, timeout_s=PATIENCE_S)) == 2
    connect.ask("DELETE", "/connectors/web")


def test_a_record_that_is_not_tolerated_fails_the_connector_until_somebody_acts(
    broker: Any, connect: Any, tmp_path: Path
) -> None:
    broker.create_topic("not-json")
    broker.produce("not-json", "this is no JSON")
    connect.create("strict", connector_class="FileStreamSink", topics="not-json", file=tmp_path / "out", **JSON)
    trace = connect.wait_for("strict", "FAILED")["connector"]["trace"]
    assert "not-json" in trace.partition("\n")[0] and "offset 0" in trace.partition("\n")[0]
    status, told = connect.ask("POST", "/connectors/strict/restart?includeTasks=true&onlyFailed=true")
    assert (status, told["connector"]["state"]) == (202, "RESTARTING")
    config = connect.ask("GET", "/connectors/strict/config")[1]
    assert connect.ask("PUT", "/connectors/strict/config", {**config, "errors.tolerance": "all"})[0] == 200
    connect.wait_for("strict", "RUNNING")
    broker.produce("not-json", "7")
    eventually(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text(), lambda text: text == "7\n")
    connect.ask("DELETE", "/connectors/strict")


def test_a_topic_that_is_made_anew_is_read_anew(broker: Any, connect: Any, tmp_path: Path) -> None:
    from ottla.client.admin.own_topics import delete_topics
    from ottla.client.cluster import ClusterClient

    broker.create_topic("anew")
    for value in ("a", "b", "c"):
        broker.produce("anew", value)
    target = tmp_path / "out"
    text = {"value_converter": "org.apache.kafka.connect.storage.StringConverter"}
    connect.create("anew", connector_class="FileStreamSink", topics="anew", file=target, **text)
    eventually(lambda: target.exists() and target.read_text(), lambda seen: seen == "a\nb\nc\n")
    with ClusterClient(broker.bootstrap_servers) as cluster:
        delete_topics(cluster, ["anew"])
    broker.create_topic("anew")
    broker.produce("anew", "d")
    eventually(target.read_text, lambda seen: seen == "a\nb\nc\nd\n")
    connect.ask("DELETE", "/connectors/anew")


@pytest.mark.slow
def test_files_are_written_again_when_offsets_are_reset(broker: Any, connect: Any, tmp_path: Path) -> None:
    broker.create_topic("reset-rows")
    broker.produce("reset-rows", "a", "b")
    connect.create(
        "reset", connector_class="FilesSink", path=tmp_path, format="text", topics="reset-rows", rotate_interval_ms=100
    )

    def shown() -> list[str]:
        paths = [path for path in sorted(tmp_path.rglob("*.txt")) if not path.name.startswith(".")]
        return [line for path in paths for line in path.read_text().split()]

    eventually(shown, lambda seen: seen == ["a", "b"])
    assert connect.ask("PUT", "/connectors/reset/stop")[0] == 204
    connect.wait_for("reset", "STOPPED")
    assert connect.ask("DELETE", "/connectors/reset/offsets")[0] == 200
    assert shown() == []
    assert connect.ask("PUT", "/connectors/reset/resume")[0] == 202
    eventually(shown, lambda seen: seen == ["a", "b"])
    # Made again as it was, it has a state.
    config = connect.ask("GET", "/connectors/reset/config")[1]
    assert connect.ask("DELETE", "/connectors/reset")[0] == 204
    assert connect.ask("PUT", "/connectors/reset/config", config)[0] == 201
    connect.wait_for("reset", "RUNNING")
    assert connect.ask("DELETE", "/connectors/reset")[0] == 204
