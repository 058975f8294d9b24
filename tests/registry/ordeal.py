"""Instances as processes that are killed, and clients that register meanwhile and remember every answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from typing import Any

import httpx

from tests.support.kafka_jars import REPO_ROOT
from tests.support.process import free_ports

SESSION_MS = 1_000


class InstanceProcess:
    def __init__(self, bootstrap: str, topic: str, session_ms: int = SESSION_MS) -> None:
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"
        self._arguments = ["--listen", self.url.removeprefix("http://"), "-b", bootstrap, "--topic", topic]
        self._arguments += ["--group", topic, "--session-timeout", str(session_ms), "--log-level", "error"]
        self._arguments += ["--compatibility", "none"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": str(REPO_ROOT / "src")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "registry", "start", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith(b"ready ")

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self.kill()


class Clients:
    """Each registers schemas of its own and of all, one after the other, at whichever instance answers."""

    def __init__(self, urls: list[str], count: int) -> None:
        self._urls = urls
        self._stop = threading.Event()
        self._lock = threading.Lock()
        # What was answered: (subject, schema) -> (id, version), all that ever were.
        self.answers: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
        # Nothing that is asked for here may be refused; only failures are expected.
        self.refusals: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def answered(self) -> int:
        with self._lock:
            return len(self.answers)

    def _run(self, number: int) -> None:
        with httpx.Client(trust_env=False, timeout=20) as http:
            turn = 0
            while not self._stop.is_set():
                subject = f"subject-{turn % 3}" if turn % 2 else f"own-{number}"
                schema = f'{{"type":"fixed","name":"F{number}x{turn}","size":4}}'
                if not self._register(http, subject, schema, number + turn):
                    self._stop.wait(0.05)
                turn += 1

    def _register(self, http: httpx.Client, subject: str, schema: str, turn: int) -> bool:
        url = self._urls[turn % len(self._urls)]
        try:
            reply = http.post(f"{url}/subjects/{subject}/versions", json={"schema": schema})
        except httpx.HTTPError:
            return False
        if reply.status_code != 200:
            if reply.status_code < 500:
                self.refusals.append(reply.text)
            return False
        answer = reply.json()
        with self._lock:
            self.answers[subject, schema].add((answer["id"], answer["version"]))
        return True


def registered(url: str) -> dict[tuple[str, int], tuple[int, str]]:
    """Everything that an instance knows: (subject, version) -> (id, schema)."""
    rows: list[dict[str, Any]] = httpx.get(f"{url}/schemas", trust_env=False, timeout=60).json()
    return {(row["subject"], row["version"]): (row["id"], row["schema"]) for row in rows}


def check(clients: Clients, urls: list[str]) -> None:
    """No id twice, no version lost, the same answer everywhere."""
    assert not clients.refusals
    views = [registered(url) for url in urls]
    assert all(view == views[0] for view in views)
    texts: dict[int, str] = {}
    for number, text in views[0].values():
        assert texts.setdefault(number, text) == text, f"id {number} is that of two schemas"
    for (subject, schema), answers in clients.answers.items():
        assert len(answers) == 1, f"{subject}: {schema} was answered with {answers}"
        for number, version in answers:
            assert views[0].get((subject, version)) == (number, schema), f"{subject} version {version} is lost"
