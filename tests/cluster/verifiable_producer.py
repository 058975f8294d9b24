"""Kafka's own VerifiableProducer (Java): it says of each record whether it was acknowledged, and where."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from ottla.testing.records import Record
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs


class VerifiableProducer(threading.Thread):
    def __init__(self, bootstrap: str, topic: str, folder: Path, per_second: int = 200) -> None:
        super().__init__(name="verifiable-producer", daemon=True)
        libs = require_kafka_libs()
        self.topic = topic
        # By value, which is a number that is sent once: partition and offset.
        self._acknowledged: dict[bytes, tuple[int, int]] = {}
        self._refused: list[str] = []
        # Of its own accord it never sends anything again.
        settings = folder / "verifiable-producer.properties"
        settings.write_text("retries=2147483647\nenable.idempotence=true\ndelivery.timeout.ms=300000\n")
        self._command = [
            *(*quick_java("128m"), "-cp", class_path(libs), "org.apache.kafka.tools.VerifiableProducer"),
            *("--bootstrap-server", bootstrap, "--topic", topic, "--acks", "-1", "--throughput", str(per_second)),
            *("--command-config", str(settings)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def acknowledged_count(self) -> int:
        return len(self._acknowledged)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.start()
        return self

    def run(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told: dict[str, Any] = json.loads(line)
            if told["name"] == "producer_send_success":
                self._acknowledged[str(told["value"]).encode()] = (told["partition"], told["offset"])
            elif told["name"] == "producer_send_error":
                self._refused.append(line.decode())

    def finish(self) -> None:
        """SIGTERM: it flushes, and tells what became of all that it sent."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(120)
        self.join(60)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(30)
        self.join(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def violations(self, records: Iterable[Record]) -> list[str]:
        places: dict[bytes, list[tuple[int, int]]] = {}
        latest: dict[int, int] = {}
        found = [f"Java's producer gave up: {refused}" for refused in self._refused]
        for record in records:
            assert record.value is not None
            places.setdefault(record.value, []).append((record.partition, record.offset))
            number = int(record.value)
            if number < latest.get(record.partition, -1):
                found.append(f"reordered: {number} comes after {latest[record.partition]} in {record.partition}")
            latest[record.partition] = number
        found += [f"duplicated: {value!r} is at {several}" for value, several in places.items() if len(several) > 1]
        for value, place in self._acknowledged.items():
            if place not in places.get(value, ()):
                found.append(f"lost: {value!r} was acknowledged at {place}, is at {places.get(value)}")
        return found
