"""Ottla as a real process, and the fixtures that give a test one: import them in a conftest.

    def test_something(ottla_process):                  # a fresh broker for this test
        ottla_process.bootstrap, ottla_process.data_dir, ottla_process.pid
        ottla_process.kill(); ottla_process.start()     # a crash, then the same address and data again

    with OttlaProcess(folder, properties={"num.partitions": "4"}) as broker: ...

A restart is on the same port, which nobody else gets meanwhile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT
from tests.support.process import BrokerDidNotStart, BrokerProcess, free_ports, is_readable

READY = re.compile(rb"^ready address=(?P<host>\S+):(?P<port>\d+) ", re.MULTILINE)


class OttlaProcess(BrokerProcess):
    name = "ottla"

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        super().__init__(folder)
        self.data_dir = folder / "data"
        self.properties = dict(properties or {})
        self.ready_line = ""
        self._arguments = list(arguments)
        self._python = python
        search_path = [str(REPO_ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join(search_path)} | dict(environment or {})

    def command(self) -> list[str]:
        """The command line; override points for a test: `properties` and `arguments`."""
        command = [self._python, "-m", "ottla", "start", "--listen", self.bootstrap]
        command += ["--data-dir", str(self.data_dir)]
        for name, value in self.properties.items():
            command += ["-X", f"{name}={value}"]
        return command + self._arguments

    def _launch(self, deadline: float) -> None:
        if not self.port:
            (self.port,) = free_ports(1)
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        self._await_ready_line(deadline)

    def _await_ready_line(self, deadline: float) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        output, told = self._process.stdout.fileno(), b""
        while (ready := READY.search(told)) is None or b"\n" not in told[ready.start() :]:
            readable = is_readable(output, deadline - time.monotonic())
            piece = os.read(output, 4096) if readable else b""
            if not piece:
                what = "ended" if readable else "said nothing in time"
                raise BrokerDidNotStart(f"ottla {what} before it was ready: {told!r}\n{self.log_tail()}")
            told += piece
        self.ready_line = told[ready.start() :].split(b"\n", 1)[0].decode()
        self.port = int(ready["port"])


@pytest.fixture
def ottla_process(tmp_path: Path) -> Iterator[OttlaProcess]:
    """A broker process for this test alone."""
    with OttlaProcess(tmp_path / "ottla") as broker:
        yield broker


@pytest.fixture
def start_ottla(tmp_path: Path) -> Iterator[Callable[..., OttlaProcess]]:
    """A factory: `start_ottla({"log.segment.bytes": "1048576"})`; all that it started ends with the test."""
    started: list[OttlaProcess] = []

    def start(properties: Mapping[str, str] | None = None, **more: object) -> OttlaProcess:
        broker = OttlaProcess(tmp_path / f"ottla-{len(started)}", properties, **more)  # type: ignore[arg-type]
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.close()
