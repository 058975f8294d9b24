"""Connect workers as child processes, and how one asks them: Kafka Connect itself, which is the oracle, and ours."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.products.program import Program
from tests.support.kafka_jars import REPO_ROOT
from tests.support.process import free_ports

STRING = "org.apache.kafka.connect.storage.StringConverter"
_PATIENCE_S = 180.0
_KAFKAS = {
    "group.id": "connect",
    "exactly.once.source.support": "enabled",
    "plugin.discovery": "service_load",
    "key.converter": STRING,
    "value.converter": STRING,
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "1000",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
}


def ask(url: str, method: str, path: str, body: Any = None, timeout_s: float = 100.0) -> tuple[int, Any, str | None]:
    """Status, answer, and the header Location."""
    request = urllib.request.Request(url + path, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, _tree(answer.read()), answer.headers.get("Location")
    except urllib.error.HTTPError as error:
        return error.code, _tree(error.read()), None


def _tree(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode()


def states(url: str, name: str) -> list[str]:
    """Of the connector, then of its tasks; none as long as nobody knows it."""
    try:
        status, answer, _ = ask(url, "GET", f"/connectors/{name}/status")
    except OSError:
        return []
    return [one["state"] for one in (answer["connector"], *answer["tasks"])] if status == 200 else []


def run_connector(url: str, name: str, config: Mapping[str, object]) -> None:
    """Until it and its task are RUNNING. Kafka's workers refuse while they rebalance."""
    texts = {"tasks.max": "1", **{key: str(value) for key, value in config.items()}}
    deadline_s = time.monotonic() + _PATIENCE_S
    while (told := ask(url, "PUT", f"/connectors/{name}/config", texts))[0] not in (200, 201):
        assert told[0] in (404, 409, 500, 503) and time.monotonic() < deadline_s, told
        time.sleep(0.2)
    while (seen := states(url, name)) != ["RUNNING", "RUNNING"]:
        assert time.monotonic() < deadline_s, f"{name} is {seen}"
        time.sleep(0.05)


def _write(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


class KafkaConnect:
    """Distributed, with Kafka's string converters; exactly once, unless `settings` say otherwise."""

    def __init__(
        self, bootstrap: str, folder: Path, settings: Mapping[str, str] | None = None, java: Sequence[str] | None = None
    ) -> None:
        """`java`: the beginning of its command, where that of a short-lived test will not do."""
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        given = {"bootstrap.servers": bootstrap, "listeners": self.url, **_KAFKAS, **(settings or {})}
        file = _write(folder / "worker.properties", given)
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self.program = Program(main, [file], folder / "connect.log", java)

    def start(self) -> None:
        """Until it answers as it should."""
        self.program.start()
        deadline_s = time.monotonic() + _PATIENCE_S
        while self._status() != 200:
            self.program.check()
            assert time.monotonic() < deadline_s, "Kafka Connect does not get ready"
            time.sleep(0.3)

    def _status(self) -> int:
        try:
            return ask(self.url, "GET", "/connectors")[0]
        except OSError:
            return 0

    def close(self) -> None:
        self.program.kill()


class OttlaConnect:
    """`ottla connect start` in a session of its own, so that all of it dies: driver, JVM, Python workers."""

    def __init__(self, bootstrap: str, folder: Path, settings: Mapping[str, str], master: str = "local[2]") -> None:
        file = _write(folder / "ottla-worker.properties", settings)
        self._log = folder / "ottla-worker.log"
        self._command = [sys.executable, "-m", "ottla", "connect", "start", "--config", str(file), "-b", bootstrap]
        self._command += ["--listen", "127.0.0.1:0", "--master", master]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": str(REPO_ROOT / "src")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env=environment
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        match = re.match(r"ready (https?://\S+)", line)
        assert match is not None, self._log.read_text()[-3000:]
        self.url = match[1]

    def kill(self, *, whole: bool) -> None:
        """kill -9: of everything at once, or of the driver only, whose tasks may live a moment longer."""
        assert self._process is not None
        if whole:
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        self._process.wait(30)

    def kill_spark(self) -> None:
        """kill -9 of the JVM only: the worker has to start another one."""
        assert self._process is not None
        for folder in Path("/proc").iterdir():
            try:
                is_ours = folder.name.isdigit() and os.getpgid(int(folder.name)) == self._process.pid
                if is_ours and (folder / "comm").read_text().strip() == "java":
                    os.kill(int(folder.name), signal.SIGKILL)
            except (ProcessLookupError, FileNotFoundError):
                continue

    def close(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait(30)
