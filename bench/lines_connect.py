"""Connect: lines of a file through a topic into another file, by Kafka Connect's FileStream connectors and by ours.

Both workers run beside the same broker from the first round to the last, Kafka's with the heap and the collector that
its own script gives it. A round gives each a new file, topic and pair of connectors; when these are RUNNING and a first
line has come through, all other lines are put into the file at once, and the clock runs until the other file has all of
them. Ours publishes exactly once; Kafka's does so in the second line only, which takes a transaction for each poll.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bench.contenders import Contender
from bench.measure import Arm, Comparison, Values, throughput
from tests.support.connect_processes import STRING, KafkaConnect, OttlaConnect, ask, run_connector
from tests.support.kafka_jars import java, why_no_kafka

LINES = 2_000_000
LINE_BYTES = 100
_WAIT_S_MAX = 600.0
_POLL_S = 0.01
_SCRIPTS_JAVA = ("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_OTTLAS = {
    "key.converter": STRING,
    "value.converter": STRING,
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
}
_numbers = itertools.count()


class _Closing:
    """A worker, as `Bench.enter` takes it."""

    def __init__(self, worker: KafkaConnect | OttlaConnect) -> None:
        self._worker = worker

    def __enter__(self) -> str:
        self._worker.start()
        return self._worker.url

    def __exit__(self, *exception: object) -> None:
        self._worker.close()


@cache
def _lines(count: int) -> bytes:
    return b"".join(b"%0*d\n" % (LINE_BYTES - 1, number) for number in range(count))


def copy(contender: Contender, url: str, folder: Path, count: int) -> Values:
    name = f"copy-{next(_numbers)}"
    source, target, lines = folder / f"{name}.in", folder / f"{name}.out", _lines(count)
    source.write_bytes(lines[:LINE_BYTES])
    with contender.topic() as topic:
        given = {"connector.class": "FileStreamSource", "file": source, "topic": topic.name}
        run_connector(url, f"{name}-in", given)
        run_connector(url, f"{name}-out", {"connector.class": "FileStreamSink", "file": target, "topics": topic.name})
        _wait(target, LINE_BYTES)
        started = time.perf_counter()
        with source.open("ab") as file:
            file.write(lines[LINE_BYTES:])
        _wait(target, len(lines))
        elapsed = time.perf_counter() - started
        if target.read_bytes() != lines:
            raise RuntimeError(f"{target} has other lines than {source}")
        for which in ("in", "out"):
            ask(url, "DELETE", f"/connectors/{name}-{which}")
    source.unlink()
    target.unlink()
    return {"records": (count - 1) / elapsed / 1e3}


def _wait(target: Path, size: int) -> None:
    deadline_s = time.monotonic() + _WAIT_S_MAX
    while not target.exists() or target.stat().st_size < size:
        if time.monotonic() > deadline_s:
            raise RuntimeError(
                f"{target} stays at {target.stat().st_size if target.exists() else 0:,} of {size:,} bytes"
            )
        time.sleep(_POLL_S)


def files_line(contender: Contender, enter: Callable[[Any], Any], *, kafka_once: bool = False) -> Comparison:
    reason = why_no_kafka()
    if reason is not None:
        raise RuntimeError(reason)
    count = max(10_000, int(LINES * contender.scale.client_share))
    purpose = "connect-files-once" if kafka_once else "connect-files"
    support = {"exactly.once.source.support": "enabled" if kafka_once else "disabled"}

    def arm(label: str, make: Callable[[Path], KafkaConnect | OttlaConnect]) -> Arm:
        folder = contender.scratch(f"{purpose}-{label.split()[0].lower()}")
        folder.mkdir()
        url = enter(_Closing(make(folder)))
        return Arm(label, lambda: copy(contender, url, folder, count), lambda: copy(contender, url, folder, count // 4))

    bootstrap, group = contender.broker.bootstrap, {"group.id": f"{purpose}-kafka"}
    topics = {f"{one}.storage.topic": f"{purpose}-kafka-{one}" for one in ("config", "offset", "status")}
    ours = {f"{one}.storage.topic": f"{purpose}-ottla-{one}" for one in ("config", "offset", "status")}
    return Comparison(
        purpose,
        f"file -> topic -> file, {LINE_BYTES} B lines, Kafka Connect {'exactly' if kafka_once else 'at least'} once",
        [throughput("records", "k/s", goal=2.0, digits=0)],
        [
            arm(
                "Kafka Connect",
                lambda folder: KafkaConnect(
                    bootstrap, folder, {**group, **topics, **support}, [str(java()), *_SCRIPTS_JAVA]
                ),
            ),
            arm(
                "ottla",
                lambda folder: OttlaConnect(
                    bootstrap, folder, {**_OTTLAS, **ours, "group.id": f"{purpose}-ottla"}, "local[*]"
                ),
            ),
        ],
        notes="both workers are there all the time, on one broker; ours publishes exactly once",
    )
