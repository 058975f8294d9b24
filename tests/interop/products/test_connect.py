"""Kafka Connect, distributed, exactly once: each line of a file is in a topic once, over a kill -9 of the worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.interop.products.conftest import Reader
from tests.support.brokers import OttlaProcess
from tests.support.connect_processes import KafkaConnect, run_connector

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.xdist_group("foreign")]
PATIENCE_S = 200.0


def test_lines_of_a_file_are_in_a_topic_once_and_in_another_file(broker: OttlaProcess, tmp_path: Path) -> None:
    create_topic(broker, "lines")
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    wanted = [f"line {number}" for number in range(3000)]

    def write(first: int, last: int) -> None:
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in wanted[first:last]))

    write(0, 1000)
    reader = Reader(broker, "lines")
    connect = KafkaConnect(broker.bootstrap, tmp_path)
    connect.start()
    try:
        lines = {"connector.class": "FileStreamSource", "file": source, "topic": "lines"}
        run_connector(connect.url, "source", {**lines, "exactly.once.support": "required"})
        eventually(reader.values, lambda seen: len(seen) >= 1000, PATIENCE_S)
        write(1000, 2000)
        connect.close()
        write(2000, 3000)
        connect.start()
        eventually(reader.values, lambda seen: len(seen) >= 3000, PATIENCE_S)
        assert reader.values() == wanted

        run_connector(connect.url, "sink", {"connector.class": "FileStreamSink", "file": sink, "topics": "lines"})
        eventually(lambda: sink.exists() and sink.read_text().splitlines(), lambda seen: seen == wanted, PATIENCE_S)
        assert reader.values() == wanted
    finally:
        connect.close()
