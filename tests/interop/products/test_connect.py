"""Kafka Connect, distributed, exactly once: each line of a file is in a topic once, over a kill -9 of the worker."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.interop.products.conftest import Reader
from tests.interop.products.program import Program
from tests.support.brokers import OttlaProcess
from tests.support.process import free_ports

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.xdist_group("foreign")]
PATIENCE_S = 200.0
WORKER = """\
bootstrap.servers={bootstrap}
group.id=connect
listeners=http://127.0.0.1:{port}
exactly.once.source.support=enabled
plugin.discovery=service_load
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=1000
session.timeout.ms=6000
heartbeat.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
"""


class Connect:
    def __init__(self, broker: OttlaProcess, folder: Path) -> None:
        (port,) = free_ports(1)
        settings = folder / "worker.properties"
        settings.write_text(WORKER.format(bootstrap=broker.bootstrap, port=port))
        self.program = Program("org.apache.kafka.connect.cli.ConnectDistributed", [settings], folder / "connect.log")
        self._url = f"http://127.0.0.1:{port}/connectors"

    def ask(self, path: str = "", content: dict[str, Any] | None = None) -> Any:
        """None while the worker is not there, or has not got so far."""
        self.program.check()
        request = urllib.request.Request(self._url + path, method="GET" if content is None else "PUT")
        if content is not None:
            request.data = json.dumps({name: str(value) for name, value in content.items()}).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            assert error.code in (404, 409, 500, 503), error.read()
        except OSError:
            pass
        return None

    def run(self, name: str, **config: object) -> None:
        eventually(lambda: self.ask(f"/{name}/config", {**config, "tasks.max": "1"}), bool, PATIENCE_S)
        eventually(lambda: self.states(name), lambda seen: seen == ["RUNNING", "RUNNING"], PATIENCE_S)

    def states(self, name: str) -> list[str]:
        """Of the connector, then of its tasks."""
        status = self.ask(f"/{name}/status")
        return [one["state"] for one in (status["connector"], *status["tasks"])] if status else []


@pytest.fixture
def connect(broker: OttlaProcess, tmp_path: Path) -> Connect:
    return Connect(broker, tmp_path)


def test_lines_of_a_file_are_in_a_topic_once_and_in_another_file(
    broker: OttlaProcess, connect: Connect, tmp_path: Path
) -> None:
    create_topic(broker, "lines")
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    wanted = [f"line {number}" for number in range(3000)]

    def write(first: int, last: int) -> None:
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in wanted[first:last]))

    write(0, 1000)
    reader = Reader(broker, "lines")
    with connect.program:
        once = {"exactly.once.support": "required"}
        connect.run("source", **{"connector.class": "FileStreamSource", "file": source, "topic": "lines"}, **once)
        eventually(reader.values, lambda seen: len(seen) >= 1000, PATIENCE_S)
        write(1000, 2000)
        connect.program.kill()
        write(2000, 3000)
        connect.program.start()
        eventually(reader.values, lambda seen: len(seen) >= 3000, PATIENCE_S)
        assert reader.values() == wanted

        connect.run("sink", **{"connector.class": "FileStreamSink", "file": sink, "topics": "lines"})
        eventually(lambda: sink.exists() and sink.read_text().splitlines(), lambda seen: seen == wanted, PATIENCE_S)
        assert reader.values() == wanted
