"""`ottla zookeeper start`: the ready line, data that stay, a clean end, and mistakes as sentences."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.metastore.port import Create, Node
from ottla.metastore.zookeeper import ZookeeperOptions, open_zookeeper
from tests.cli.command import Cli
from tests.support.process import command_of, free_ports
from tests.support.zookeeper import why_no_zookeeper


@pytest.fixture
def cli() -> Cli:
    return Cli()


@pytest.fixture
def can_run() -> None:
    reason = why_no_zookeeper()
    if reason is not None:
        pytest.skip(reason)


@contextmanager
def started(cli: Cli, folder: Path, address: str) -> Iterator[subprocess.Popen[Any]]:
    server = cli.start(
        *("zookeeper", "start", "--listen", address, "--data-dir", folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == f"ready address={address}\n"
        yield server
    finally:
        if server.poll() is None:
            server.kill()
        server.communicate(timeout=30)


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_serves_and_stops(can_run: None, cli: Cli, tmp_path: Path, stop_signal: signal.Signals) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with started(cli, tmp_path, address) as server:
        store = open_zookeeper(ZookeeperOptions(address, "/c", 30_000))
        store.multi([Create("/a", b"1")])
        store.close()
        # No second process that a signal would have to find.
        assert "QuorumPeerMain" in command_of(server.pid)
        server.send_signal(stop_signal)
        out, err = server.communicate(timeout=60)
    assert server.returncode == 128 + stop_signal
    assert (out, err) == ("", "")
    with started(cli, tmp_path, address):
        store = open_zookeeper(ZookeeperOptions(address, "/c", 30_000))
        assert store.get("/a") == Node(b"1", 0)
        store.close()


def test_a_port_that_is_taken_is_a_sentence(can_run: None, cli: Cli, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = cli.fails(1, "zookeeper", "start", "--listen", address, "--data-dir", tmp_path)
    assert said == f"ottla: cannot listen on {address}: Address already in use."


def test_a_folder_that_cannot_be_written_is_a_sentence(can_run: None, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = cli.fails(1, "zookeeper", "start", "--data-dir", tmp_path / "file" / "below")
    assert said == f"ottla: cannot write to {tmp_path}/file/below: Not a directory."


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", ":2181", "127.0.0.1:99999"])
def test_what_is_no_address_is_a_sentence(cli: Cli, tmp_path: Path, address: str) -> None:
    said = cli.fails(2, "zookeeper", "start", "--listen", address, "--data-dir", tmp_path)
    assert f"--listen is '{address}', expected HOST:PORT" in said


def test_without_java_the_sentence_says_what_to_install(can_run: None, tmp_path: Path) -> None:
    cli = Cli(environment={"PATH": str(tmp_path)})
    said = cli.fails(1, "zookeeper", "start", "--data-dir", tmp_path)
    assert "the ZooKeeper server needs Java and there is no Java here: install one" in said
    cli = Cli(environment={"JAVA_HOME": "/nowhere"})
    said = cli.fails(1, "zookeeper", "start", "--data-dir", tmp_path)
    assert "JAVA_HOME is /nowhere, where there is no Java" in said


def test_without_pyspark_the_sentence_says_what_to_install(can_run: None, tmp_path: Path) -> None:
    """A package of that name without jars is as good as none."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), Cli().variables()["PYTHONPATH"]])
    said = Cli(environment={"PYTHONPATH": path}).fails(1, "zookeeper", "start", "--data-dir", tmp_path / "data")
    assert "comes with PySpark, which is not here: run `pip install 'ottla[spark]'`" in said
