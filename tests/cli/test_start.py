"""`ottla start`: the ready line, a clean stop, and configuration mistakes as sentences."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import Cli


@pytest.fixture
def cli() -> Cli:
    return Cli()


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_serves_and_stops_cleanly(cli: Cli, tmp_path: Path, stop_signal: signal.Signals) -> None:
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=3\nnode.id=7\n")
    broker = cli.start(
        *("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data", "--config", config),
        *("-X", "num.partitions=4"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert broker.stdout is not None
        ready = re.fullmatch(r"ready address=(127\.0\.0\.1:\d+) node\.id=7 version=\S+\n", broker.stdout.readline())
        assert ready is not None
        client = Cli(ready[1])
        client.ok("topic", "create", "t")
        assert client.ok("topic", "list", "--output", "json").data[0]["partitions"] == 4
    finally:
        broker.send_signal(stop_signal)
        out, err = broker.communicate(timeout=30)
    assert broker.returncode == 0
    assert out == ""
    assert "Traceback" not in err
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_mistakes_are_one_sentence(cli: Cli, tmp_path: Path) -> None:
    start = ("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data")
    assert "num.partitions" in cli.fails(1, *start, "-X", "num.partitons=3")
    assert "num.partitions" in cli.fails(1, *start, "-X", "num.partitions=three")
    assert "key=value" in cli.fails(1, *start, "-X", "nonsense")
    assert "none.properties" in cli.fails(1, *start, "--config", tmp_path / "none.properties")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = cli.fails(1, "start", "--listen", f"127.0.0.1:{port}", "--data-dir", tmp_path / "data")
    assert f"port {port}" in sentence
    assert "taken" in sentence


def test_a_folder_in_use_is_refused(cli: Cli, tmp_path: Path) -> None:
    start = ("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data")
    first = cli.start(*start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert first.stdout is not None
        assert first.stdout.readline().startswith(b"ready")
        assert str(tmp_path / "data") in cli.fails(1, *start)
    finally:
        first.terminate()
        first.communicate(timeout=30)


def test_properties_may_stand_before_the_verb(cli: Cli, tmp_path: Path) -> None:
    assert "num.partitions" in cli.fails(1, "-X", "num.partitions=x", "start", "--data-dir", tmp_path / "data")
