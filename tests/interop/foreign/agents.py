"""Other languages' clients as child processes that take one JSON request per line and answer with one per line.

Each agent (Java kafka-clients, kafkajs, franz-go) is built into `.cache/interop` when its source changes, started once
for all tests, and knows the same steps: `produce`, `consume`, `join`, `seen`, `leave`, and some of its own. A broker's
address is part of each request, so one agent serves tests on Ottla and on Apache Kafka alike. Where a toolchain or a
registry is missing, `Unavailable` says why.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.kafka_jars import CACHE, class_path, kafka_libs, quick_java, why_no_kafka
from tests.support.process import is_readable

HERE = Path(__file__).resolve().parent
BUILD_SECONDS_MAX = 600
ANSWER_SECONDS_MAX = 90.0


class Unavailable(Exception):
    """Why a client cannot be had here, as one sentence."""


class AgentError(RuntimeError):
    """The client raised; the message is its error's class and text."""


class Agent:
    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        self._unread = b""
        self.version = self.call("hello")

    def call(self, op: str, *, answer_within_s: float = ANSWER_SECONDS_MAX, **arguments: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
        answer = json.loads(self._line(op, time.monotonic() + answer_within_s))
        if answer.get("error") is not None:
            raise AgentError(f"{self.name} {op}: {answer['error']}")
        return answer.get("result")

    def _line(self, op: str, deadline: float) -> bytes:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            if not is_readable(output, deadline - time.monotonic()):
                raise AgentError(f"{self.name} {op}: no answer in time\n{self._log_tail()}")
            piece = os.read(output, 1 << 20)
            if not piece:
                raise AgentError(f"{self.name} {op}: the agent ended\n{self._log_tail()}")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def _log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()


# --- building --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _built_once(name: str, sources: list[Path]) -> Iterator[tuple[Path, bool]]:
    """The folder for what is built from these sources, and whether it is there already; one builder at a time."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources))).hexdigest()[:12]
    folder = CACHE / "interop" / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / ".done"
        yield folder, done.exists()
        done.touch()


def _build(command: list[str], folder: Path, what: str) -> None:
    try:
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} did not finish within {BUILD_SECONDS_MAX} seconds") from None
    if made.returncode != 0:
        last = (made.stderr or made.stdout).strip().splitlines()[-1:] or ["no reason given"]
        raise Unavailable(f"{what} failed: {last[0]}")


def java_command() -> list[str]:
    reason = why_no_kafka()
    libs = kafka_libs()
    if reason is not None or libs is None:
        raise Unavailable(reason or "no jars")
    if shutil.which("javac") is None:
        raise Unavailable("there is a Java runtime but no javac")
    sources = list((HERE / "java").glob("*.java"))
    with _built_once("java", sources) as (folder, done):
        if not done:
            _build(["javac", "-d", str(folder), "-cp", class_path(libs), *map(str, sources)], folder, "javac")
    return [*quick_java("768m"), "-cp", class_path(libs, folder), "Agent"]


def kafkajs_command() -> list[str]:
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Unavailable("Node.js and npm are not installed")
    sources = [HERE / "node" / "package.json", HERE / "node" / "agent.js"]
    with _built_once("node", sources) as (folder, done):
        if not done:
            for source in sources:
                shutil.copy(source, folder)
            npm = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
            _build(npm, folder, "npm install of kafkajs")
    return ["node", str(folder / "agent.js")]


def franz_go_command() -> list[str]:
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    sources = [*(HERE / "go").glob("*.go"), HERE / "go" / "go.mod", HERE / "go" / "go.sum"]
    with _built_once("go", sources) as (folder, done):
        if not done:
            _build(["go", "build", "-buildvcs=false", "-o", str(folder / "interop"), "."], HERE / "go", "go build")
    return [str(folder / "interop")]


COMMANDS = {"java": java_command, "kafkajs": kafkajs_command, "franz-go": franz_go_command}
