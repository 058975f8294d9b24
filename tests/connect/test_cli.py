"""`ottla connect`: verbs over REST, and what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.standalone import StandaloneServer, standalone_worker
from tests.cli.command import Cli


class Verbs:
    def __init__(self, bootstrap: str, url: str) -> None:
        self._cli = Cli(bootstrap, {"OTTLA_CONNECT_URL": url})

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Status and what was printed, errors included."""
        done = self._cli("connect", *arguments)
        assert "Traceback" not in done.err
        return done.status, done.out + done.err


@pytest.fixture
def cli(broker: Any, connect: Any) -> Verbs:
    return Verbs(broker.bootstrap_servers, connect.url)


def test_the_life_of_a_connector_from_the_command_line(broker: Any, connect: Any, cli: Verbs, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    file = tmp_path / "lines.properties"
    file.write_text(f"name=lines\nconnector.class=FileStreamSource\nfile={tmp_path / 'in.txt'}\n")
    status, told = cli("create", "lines", "-f", str(file), "--dry-run")
    assert (status, 'Missing required configuration "topic"' in told) == (1, True)
    assert cli("create", "lines", "-f", str(file), "-c", "topic=cli-lines", "--dry-run")[0] == 0
    assert connect.ask("GET", "/connectors/lines")[0] == 404
    assert cli("create", "lines", "-f", str(file), "-c", "topic=cli-lines")[0] == 0
    connect.wait_for("lines", "RUNNING")
    assert len(broker.records("cli-lines", count=2, timeout_s=60)) == 2
    status, told = cli("list")
    assert status == 0 and "lines" in told and "RUNNING" in told and "1/1" in told
    rows = json.loads(cli("list", "--output", "json")[1])
    assert [(row["name"], row["state"], row["type"]) for row in rows] == [("lines", "RUNNING", "source")]
    assert "RUNNING" in cli("status", "lines")[1]
    assert '{"position": 8}' in cli("offsets", "lines")[1]
    status, told = cli("offsets", "lines", "--reset", "-y")
    assert status == 1 and "must be in the STOPPED state" in told
    for verb, state in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED")):
        assert cli(verb, "lines")[0] == 0
        connect.wait_for("lines", state)
    assert (
        cli("offsets", "lines", "--set", '{"offsets":[{"partition":{"filename":"x"},"offset":{"position":1}}]}', "-y")[
            0
        ]
        == 0
    )
    assert cli("offsets", "lines", "--reset", "-y")[0] == 0
    assert json.loads(cli("offsets", "lines", "--output", "json")[1]) == {"offsets": []}
    assert cli("resume", "lines")[0] == cli("restart", "lines")[0] == 0
    assert len(broker.records("cli-lines", count=4, timeout_s=60)) == 4
    status, told = cli("delete", "lines", "-y")
    assert (status, told) == (0, "lines: deleted\n")
    assert cli("status", "lines")[0] == 1


def test_plugins_and_their_settings_are_shown(cli: Verbs) -> None:
    status, told = cli("plugins")
    assert status == 0 and "org.apache.kafka.connect.file.FileStreamSourceConnector" in told and "FilesSink" in told
    status, told = cli("plugins", "FilesSink")
    assert status == 0 and "rotate.interval.ms" in told


def test_a_worker_that_is_not_there_is_told_in_a_sentence(cli: Verbs) -> None:
    status, told = cli("list", "--url", "http://127.0.0.1:9")
    assert status == 1 and "start one with `ottla connect start`" in told


async def test_connectors_of_files_run_in_a_worker_of_their_own(broker: Any, spark: Any, tmp_path: Path) -> None:
    import asyncio

    (tmp_path / "in.txt").write_text("alone\n")
    given = {
        "bootstrap.servers": broker.bootstrap_servers,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.storage.file.filename": "/tmp/ignored",
    }
    config = {"name": "one", "connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": "alone"}
    settings = standalone_worker(given, listen="127.0.0.1:0", master="local[2]")
    server = StandaloneServer(settings, {"one.properties": config}, spark)
    await server.start()
    try:
        records = await asyncio.to_thread(broker.records, "alone", count=1, timeout_s=60)
        assert [record.value for record in records] == [b"alone"]
    finally:
        await server.stop()
