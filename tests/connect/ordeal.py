"""A worker that is killed again and again while rows come in, all of it, its driver or its JVM: afterwards every row is
in the files once, and in order."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.connect_processes import STRING, OttlaConnect, ask

WORKER = {
    "key.converter": STRING,
    "value.converter": STRING,
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "offset.storage.partitions": "2",
    "status.storage.partitions": "1",
    "ottla.restart.backoff.ms": "200",
    "ottla.idle.max.ms": "100",
    "ottla.round.max.bytes": "200000",
}
PATIENCE_S = 300.0


def rows_of(folder: Path) -> list[str]:
    found: list[str] = []
    for path in sorted(folder.rglob("*.parquet")):
        if not path.name.startswith("."):
            found += pq.read_table(path).column("value").to_pylist()
    return found


def endure(bootstrap: str, folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Raises AssertionError when a row is missing, twice, or out of order."""
    chance = random.Random(seed)
    source, target = folder / "lines.txt", folder / "out"
    written = 0

    def write(count: int) -> None:
        nonlocal written
        with source.open("a") as file:
            file.write("".join(f"line {number:07} {'x' * 60}\n" for number in range(written, written + count)))
        written += count

    write(2_000)
    worker = OttlaConnect(bootstrap, folder, WORKER)
    try:
        worker.start()
        for name, config in (
            ("src", {"connector.class": "FileStreamSource", "file": str(source), "topic": "killed"}),
            (
                "snk",
                {
                    "connector.class": "FilesSink",
                    "path": str(target),
                    "format": "parquet",
                    "topics": "killed",
                    "rotate.interval.ms": "100",
                    "rotate.records": "700",
                },
            ),
        ):
            assert ask(worker.url, "PUT", f"/connectors/{name}/config", config)[0] == 201
        for _ in range(kills):
            before = len(rows_of(target))
            write(chance.randint(500, 4_000))
            _wait(lambda before=before: len(rows_of(target)) > before)
            time.sleep(chance.uniform(0.0, 1.5))
            what = chance.choice(("everything", "driver", "Spark"))
            if what == "Spark":
                worker.kill_spark()
            else:
                worker.kill(whole=what == "everything")
            write(chance.randint(0, 1_000))
            if what != "Spark":
                worker.start()
        _wait(lambda: len(rows_of(target)) >= written)
        time.sleep(1.0)
        rows = rows_of(target)
        assert len(rows) == len(set(rows)) == written, (len(rows), len(set(rows)), written)
        assert rows == sorted(rows), "out of order"
    finally:
        worker.close()
    return {"rows": written, "files": len(list(target.rglob("*.parquet")))}


def _wait(look: Any) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline_s, "nothing more happens"
        time.sleep(0.05)
