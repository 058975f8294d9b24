"""Pipelines (`tests.support.pipeline`) as processes that a test starts, stops and kills, and what they are to move."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from confluent_kafka import Producer

from tests.support.kafka_jars import REPO_ROOT
from tests.support.process import is_readable
from tests.support.transactional_libraries import Reader


class Pipeline:
    """tests.support.pipeline in a process of its own."""

    def __init__(self, library: str, bootstrap: str, source: str, target: str, group: str, name: str) -> None:
        command = [sys.executable, "-m", "tests.support.pipeline", library, bootstrap, source, target, group, name]
        environment = os.environ | {
            "PYTHONPATH": f"{REPO_ROOT / 'src'}{os.pathsep}{REPO_ROOT}",
            "PYTHONWARNINGS": "ignore",
        }
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=REPO_ROOT, bufsize=0)
        self.committed = 0
        self.said: list[str] = []
        self._unread = b""

    def listen(self, timeout_s: float) -> str | None:
        """The next line, if one comes in time; empty when the process has ended."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            if not is_readable(self.process.stdout.fileno(), deadline - time.monotonic()):
                return None
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return ""
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        words = line.decode()
        self.said.append(words)
        if words.startswith("committed"):
            self.committed = int(words.split()[1])
        return words

    def until(self, start: str, timeout_s: float = 280.0) -> str:
        line = self.hears(start, timeout_s)
        if line is None:
            raise AssertionError(f"no '{start}' within {timeout_s:g} s: {self.said[-5:]}")
        return line

    def hears(self, start: str, timeout_s: float) -> str | None:
        """A line that begins so; None if there is none for so long."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            line = self.listen(1.0)
            if line == "":
                raise AssertionError(f"the pipeline ended: {self.said[-5:]}")
            if line is not None and line.startswith(start):
                return line
        return None

    def drain(self) -> None:
        while self.listen(0.0):
            pass

    def end(self) -> None:
        self.process.kill()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


def fill(bootstrap: str, topic: str, first: int, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(topic, b"%05d" % number, partition=number % partitions)
    assert producer.flush(30) == 0


def expected(count: int, partitions: int) -> dict[int, list[bytes]]:
    return {
        one: [b"%05d" % number for number in range(count) if number % partitions == one] for one in range(partitions)
    }


def moved(bootstrap: str, target: str, partitions: int, count: int, timeout_s: float = 90.0) -> dict[int, list[bytes]]:
    """What a reader of committed records finds when `count` have come: them, and not one more after them."""
    reader = Reader(bootstrap, target, range(partitions))
    reader.until(count, timeout_s)
    reader.close()
    again = Reader(bootstrap, target, range(partitions))
    try:
        return again.until_end()
    finally:
        again.close()
