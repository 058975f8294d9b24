"""A real ZooKeeper server, the one inside PySpark's jars: one for a session of tests, or one of its own for a test.

    def test(zookeeper: Zookeeper, chroot: str): options = zookeeper.options(chroot)

Tests share the server and each has its own chroot. One that kills or pauses it takes `own_zookeeper`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.zookeeper import server as server_program
from ottla.metastore.zookeeper import ZookeeperOptions
from tests.support.process import free_ports

# Short, so that short sessions are possible.
TICK_MS = 100

_numbers = itertools.count()


def why_no_zookeeper() -> str | None:
    """One sentence when the server cannot be run here, None when it can."""
    if shutil.which("java") is None:
        return "Java is not installed"
    if find_spec("pyspark") is None:
        return "PySpark, which brings the ZooKeeper server, is not installed: run `make setup`"
    return None


class Zookeeper:
    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.host = "127.0.0.1"
        self.port = free_ports(1)[0]
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def options(self, chroot: str = "", **more: Any) -> ZookeeperOptions:
        return ZookeeperOptions(**{"servers": self.address, "chroot": chroot, "session_timeout_ms": 30_000, **more})

    # --- life

    def start(self) -> None:
        command = server_program.prepare(self.folder, self.host, self.port, tick_ms=TICK_MS, settings=self._settings)
        with (self.folder / "server.log").open("ab") as log:
            # Its own session, so that a Ctrl-C at the tests does not end it before they do.
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        while not server_program.is_serving(self.host, self.port):
            assert self._process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def kill(self) -> None:
        """kill -9; the data stay."""
        assert self._process is not None
        self.resume()
        self._process.kill()
        self._process.wait(30)
        self._process = None

    def pause(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    # --- facts

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-4000:]


@contextlib.contextmanager
def running(server: Zookeeper) -> Iterator[Zookeeper]:
    """Skips the test, with the reason, where there can be none."""
    reason = why_no_zookeeper()
    if reason is not None:
        pytest.skip(reason)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zookeeper]:
    """One for all tests; leave it as it is."""
    with running(Zookeeper(tmp_path_factory.mktemp("zookeeper"))) as server:
        yield server


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[Zookeeper]:
    """One to kill, pause and restart."""
    with running(Zookeeper(tmp_path / "zookeeper")) as server:
        yield server


@pytest.fixture
def chroot() -> str:
    """No other test has it."""
    return f"/tests/{os.getpid()}-{next(_numbers)}"
