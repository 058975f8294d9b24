"""A topic full of records that do not compress, a pipeline that copies it, and what that costs."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import confluent_kafka

from tests.cli.command import Cli
from tests.support.process import command_of, descendants

RECORD_BYTES = 8 * 1024
_BLOB_BYTES = 64 * 1024 * 1024
_HEAD = struct.Struct(">HI")
PIPELINE = """
from ottla.spark.pipeline import pipeline

@pipeline(name="copy", to="out")
def copied(topics):
    return topics.stream("in").select("key", "value"){more}
"""
# What makes a copy a query like any other, whose records become rows.
THROUGH_ROWS = '.where("true")'


@dataclass
class Tally:
    """What was seen of the records that came from one partition of the source."""

    count: int = 0
    checksum: int = 0
    doubled: int = 0
    seen: bytearray = field(default_factory=bytearray, repr=False)

    def add(self, number: int, key: bytes, value: bytes) -> None:
        if number >= len(self.seen):
            self.seen.extend(bytes(number + 1 - len(self.seen)))
        self.doubled += self.seen[number]
        self.seen[number] = 1
        self.count += 1
        self.checksum = (self.checksum + zlib.crc32(value, zlib.crc32(key))) & 0xFFFF_FFFF_FFFF_FFFF


Tallies = dict[int, Tally]


def fill(servers: str, topic: str, total_bytes: int, partitions: int) -> Tallies:
    """Records of 8 KB of noise, that say where they are from."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "queue.buffering.max.kbytes": 256 * 1024, "linger.ms": 20, "batch.size": 900_000}
    )
    blob = os.urandom(_BLOB_BYTES)
    room = RECORD_BYTES - _HEAD.size
    tallies: Tallies = {partition: Tally() for partition in range(partitions)}
    for index in range(total_bytes // RECORD_BYTES):
        partition, number = index % partitions, index // partitions
        at = index * 8191 % (_BLOB_BYTES - room)
        key, value = b"%d-%d" % (partition, number), _HEAD.pack(partition, number) + blob[at : at + room]
        while True:
            try:
                producer.produce(topic, value, key, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        tallies[partition].add(number, key, value)
    assert producer.flush(600) == 0
    return tallies


def tally(servers: str, topic: str, partitions: int) -> Tallies:
    """Of all committed records, by where they are from."""
    found: Tallies = {}
    for message in committed(servers, topic, partitions):
        source, number = _HEAD.unpack_from(message.value())
        found.setdefault(source, Tally()).add(number, message.key(), message.value())
    return found


def committed(servers: str, topic: str, partitions: int) -> Iterator[Any]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "tally", "isolation.level": "read_committed",
         "enable.partition.eof": True, "queued.max.messages.kbytes": 64 * 1024}
    )  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    ended = 0
    while ended < partitions:
        for message in consumer.consume(500, 0.5):
            if message.error() is None:
                yield message
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                ended += 1
    consumer.close()


@dataclass
class Peaks:
    """The most that processes held, in megabytes: the driver's Python, its JVM, and all its workers."""

    python_mb: int = 0
    jvm_mb: int = 0
    workers_mb: int = 0
    # Files of the spool.
    spool_mb: int = 0


class Watched:
    """A driver as a process of its own, in a session of its own."""

    def __init__(self, process: subprocess.Popen[bytes], spool: Path) -> None:
        self.process = process
        self.spool = spool
        self.peaks = Peaks()
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        """The driver, its JVM and all workers, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.close()

    def close(self) -> str:
        """What it said on stderr."""
        said = self.process.communicate()[1].decode()
        self._ended.set()
        self._watching.join()
        return said

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            jvm = workers = 0
            for pid in descendants(self.process.pid):
                if "java" in command_of(pid).partition(" ")[0]:
                    jvm += _resident_mb(pid)
                else:
                    workers += _resident_mb(pid)
            peaks = self.peaks
            peaks.python_mb = max(peaks.python_mb, _resident_mb(self.process.pid))
            peaks.jvm_mb = max(peaks.jvm_mb, jvm)
            peaks.workers_mb = max(peaks.workers_mb, workers)
            peaks.spool_mb = max(peaks.spool_mb, _size_mb(self.spool))


class CopyRun(Watched):
    """`ottla pipeline run --once`."""

    def __init__(
        self,
        servers: str,
        folder: Path,
        *,
        more: str = "",
        master: str = "local[2]",
        conf: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        spool = folder / "spool"
        file = folder / "copy.py"
        file.write_text(PIPELINE.format(more=more))
        cli = Cli(servers, {"OTTLA_PIPELINES": str(folder / "pipelines"), **(environment or {})})
        settings = ["spark.ui.enabled=false", f"spark.ottla.spool.dir={spool}", *conf]
        words = [word for one in settings for word in ("--conf", one)]
        process = cli.start(
            "pipeline", "run", file, "--once", "--master", master, *words,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        super().__init__(process, spool)
        self.events: list[dict[str, Any]] = []
        # Executors, by a test that does so.
        self.kills = 0

    def batches(self) -> Iterator[dict[str, Any]]:
        """As they are written."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == "batch":
                yield self.events[-1]

    def attempts(self) -> dict[str, int]:
        """Files of attempts that are on their way to the spool, and their sizes."""
        found = {}
        for path in self.spool.rglob("*.part"):
            with suppress(OSError):
                found[path.name] = path.stat().st_size
        return found


def _resident_mb(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except (OSError, IndexError):
        return 0


def _size_mb(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total >> 20
