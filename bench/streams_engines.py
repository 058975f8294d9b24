"""Three ways to run a program of `streams_programs.py`: Ottla Streams on Spark, Kafka Streams, quix-streams. All on one
broker, each with topics of its own, exactly once, on two cores.

A measurement is a burst: records are made beforehand and given to the broker faster than anybody counts them; the clock
runs from the first of them until the last result is committed. Nobody reads the results meanwhile: only the ends of the
committed log are asked for. Afterwards they are read, and counts that do not add up are an error.

The Java and Python processes live from the first round to the last, so that compilers have learned. Ottla's query is
started for each round, in a Spark that stays, as a query without records costs more than a process that waits; a small
burst before the measured one sees to it that all are ready.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import confluent_kafka

from bench.contenders import Contender
from bench.lines_spark import OURS, session
from bench.streams_programs import PARTITIONS, Program, counted_in
from tests.support.kafka_jars import CACHE, REPO_ROOT, java

STREAMS_JARS = CACHE / "kafka-streams"
QUIX_PYTHON = CACHE / "quix" / "bin" / "python"
HERE = Path(__file__).parent
QUIX_PROCESSES = 2
_POLL_S, _QUIET_S, _WAIT_S_MAX = 0.02, 1.5, 600.0


class Engine(Protocol):
    label: str

    def running(self, job: Job) -> contextlib.AbstractContextManager[object]:
        """The program, for the time of a block or longer."""


class Job:
    """A program with topics of its own on a broker, fed in bursts."""

    def __init__(self, contender: Contender, program: Program, engine: Engine) -> None:
        self.program = program
        self.engine = engine
        self.contender = contender
        self.bootstrap = contender.broker.bootstrap
        self.folder = Path(tempfile.mkdtemp(prefix=f"{program.name}-", dir=contender.broker.folder))
        self.name = f"bench-{engine.label.split()[0].lower()}-{self.folder.name}"
        self.source, self.target = f"{self.name}-in", f"{self.name}-out"
        with contender.connect() as connection:
            self._topic_id = connection.create_topic(self.source, PARTITIONS, {})
            connection.create_topic(self.target, PARTITIONS, {})
        self._feed = program.feed()
        self._results = _Results(self.bootstrap, self.target)

    def burst(self, records: int) -> float:
        """Seconds until all of them are counted and committed."""
        requests = list(self._feed.requests(self._topic_id, records))
        path = self.folder / "requests"
        with path.open("wb") as file:
            file.writelines(requests)
        started = time.monotonic()
        self.contender.load("produce", frames=path, inflight=5, seconds=600, requests=len(requests))
        ended = self._results.await_total(self._feed.counted)
        path.unlink()
        return ended - started


class _Results:
    """Of one program, as a consumer of committed records sees them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed",
             "enable.auto.commit": False, "fetch.wait.max.ms": 10, "log_level": 0}
        )  # fmt: skip
        self._partitions = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
        self._counts: dict[tuple[bytes | None, bytes], int] = {}

    def _ends(self) -> list[int]:
        return [self._consumer.get_watermark_offsets(one, 20)[1] for one in self._partitions]

    def await_total(self, wanted: int) -> float:
        """When the last result came without which the counts would not add up to this."""
        deadline = time.monotonic() + _WAIT_S_MAX
        seen, changed = self._ends(), time.monotonic()
        while True:
            time.sleep(_POLL_S)
            now = self._ends()
            if now != seen:
                seen, changed = now, time.monotonic()
            elif time.monotonic() - changed > _QUIET_S and (counted := self._read(seen)) >= wanted:
                if counted > wanted:
                    raise RuntimeError(f"{counted:,} were counted, and there are {wanted:,}")
                return changed
            if time.monotonic() > deadline:
                raise RuntimeError(f"{sum(self._counts.values()):,} were counted of {wanted:,}")

    def _read(self, ends: list[int]) -> int:
        """What the counts add up to; nothing is read twice."""
        behind = [one for one in self._partitions if one.offset < ends[one.partition]]
        self._consumer.assign(behind)
        while behind:
            for message in self._consumer.consume(10_000, 0.2):
                if message.error():
                    raise RuntimeError(str(message.error()))
                *window, count = counted_in(message.value())
                self._counts[message.key(), b"".join(window)] = int(count)
            # Markers of transactions take offsets too: only the consumer knows where it is.
            for place in self._consumer.position(behind):
                if place.offset >= 0:
                    self._partitions[place.partition].offset = place.offset
            behind = [one for one in behind if self._partitions[one.partition].offset < ends[one.partition]]
        self._consumer.unassign()
        return sum(self._counts.values())


class OttlaStreams:
    label = "ottla"

    @contextmanager
    def running(self, job: Job) -> Iterator[None]:
        query = self.start(job)
        try:
            yield
        finally:
            query.stop()

    def start(self, job: Job) -> Any:
        from ottla.streams.engine.application import StreamsApplication

        topology = job.program.topology(job.source, job.target)
        application = StreamsApplication(topology, application_id=job.name, bootstrap=job.bootstrap)
        return application.start(session(OURS), checkpoint=str(job.folder / "checkpoint"))


class Processes:
    """Programs in processes of their own, until `close`; or until their standard input
    ends, if the benchmark is killed."""

    def __init__(self) -> None:
        self._started: dict[str, list[subprocess.Popen[str]]] = {}

    def commands(self, job: Job) -> list[list[str]]:
        raise NotImplementedError

    def has_started(self, process: subprocess.Popen[str], log: Path) -> None:
        """Returns when it has."""

    @contextmanager
    def running(self, job: Job) -> Iterator[None]:
        """Beyond the block, until `close`."""
        if job.name not in self._started:
            self._started[job.name] = []
            for number, command in enumerate(self.commands(job)):
                log = job.folder / f"{number}.log"
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("w"), text=True,
                    cwd=REPO_ROOT,
                )  # fmt: skip
                self._started[job.name].append(process)
                self.has_started(process, log)
        yield
        for process in self._started[job.name]:
            if process.poll() is not None:
                raise RuntimeError(f"{job.name} ended: see {job.folder}")

    def close(self) -> None:
        """Their state is of no use to anybody: they are not asked to leave their group first."""
        for processes in self._started.values():
            for process in processes:
                process.kill()
                process.wait()
        self._started.clear()


class KafkaStreams(Processes):
    """`cache_bytes=0`: it emits every update, as Ottla Streams does, and not the last of each tenth of a second."""

    label = "Kafka Streams"

    def __init__(self, cache_bytes: int | None = None) -> None:
        super().__init__()
        self._more = [] if cache_bytes is None else [str(cache_bytes)]

    def commands(self, job: Job) -> list[list[str]]:
        return [
            [
                str(java()), "-Xmx1g", "-cp", f"{STREAMS_JARS}/*", str(HERE / "java" / "StreamsLoad.java"),
                job.program.name, job.bootstrap, job.name, job.source, job.target, str(job.folder / "state"),
                *self._more,
            ]
        ]  # fmt: skip

    def has_started(self, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "running":
            raise RuntimeError(f"Kafka Streams did not start: {log.read_text()[-500:]}")

    @staticmethod
    def why_not() -> str | None:
        if java() is None or shutil.which("javac") is None:
            return "there is no Java compiler: install a JDK"
        if not any(STREAMS_JARS.glob("kafka-streams-4*.jar")):
            return "Kafka Streams' jars are not there: run `python tools/fetch_jars.py kafka-streams`"
        return None


class QuixStreams(Processes):
    label = "quix-streams"

    def commands(self, job: Job) -> list[list[str]]:
        return [
            [
                str(QUIX_PYTHON), str(HERE / "quix_application.py"),
                job.program.name, job.bootstrap, job.name, job.source, job.target, str(job.folder / f"state-{number}"),
            ]
            for number in range(QUIX_PROCESSES)
        ]  # fmt: skip

    @staticmethod
    def why_not() -> str | None:
        if not any(QUIX_PYTHON.parent.parent.glob("quixstreams-*")):
            return "quix-streams is not there: run `python tools/fetch_quix_streams.py`"
        return None
