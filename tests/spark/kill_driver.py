"""A driver to be killed: two exactly-once queries that start again by themselves until all input is written.

    python -m tests.spark.kill_driver '{"bootstrap": ..., "folder": ..., "master": ...}'

`shout` is stateless and writes to two topics; `count` is a stateful aggregation. Each ends when the file `end` is in
the folder and its marker says that it has read everything. `crash_after` makes the process end itself right after that
many transactions, before Spark knows of the last one; `without_marker` disables the check that makes this harmless.
Without `encodes_few_rows` rows are encoded by executors always.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import ottla.spark
from ottla.spark.sink import load, publishing
from ottla.spark.sink.marker import digest_of

QUERIES = ("shout", "count")
KEYS = 20
PER_BATCH = 2_000
RESTART_S = 0.3


class Driver:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.bootstrap = settings["bootstrap"]
        self.folder = Path(settings["folder"])
        self.spark = ottla.spark.session(
            app="kills", master=settings["master"], **{"spark.ui.enabled": False, **settings.get("conf", {})}
        )
        self.spark.sparkContext.setLogLevel("OFF")

    def stream(self) -> Any:
        return (
            self.spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", "in")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", PER_BATCH)
            .load()
            .selectExpr("cast(cast(value as string) as long) as number")
        )

    def shout(self) -> Any:
        return self.stream().selectExpr(
            "concat('!', number) as value", "cast(number as string) as key", "concat('shout-', number % 2) as topic"
        )

    def count(self) -> Any:
        keyed = self.stream().selectExpr(f"cast(number % {KEYS} as string) as key", "number")
        counted = keyed.groupBy("key").agg({"number": "sum", "*": "count"})
        return counted.selectExpr("key", "concat(`count(1)`, ' ', `sum(number)`) as value")

    def start(self, name: str) -> Any:
        is_count = name == "count"
        return ottla.spark.write_stream(
            self.count() if is_count else self.shout(),
            name=name,
            bootstrap=self.bootstrap,
            checkpoint=str(self.folder / name),
            topic="count" if is_count else None,
            output_mode="update" if is_count else "append",
            trigger={"processingTime": "0 seconds"},
        )

    def is_done(self, name: str) -> bool:
        if not (self.folder / "end").exists():
            return False
        end = json.loads((self.folder / "end").read_text())
        marker = ottla.spark.published(name=name, bootstrap=self.bootstrap)
        return marker is not None and marker.digest == digest_of({"in": end})

    def run(self) -> None:
        running: dict[str, Any] = {}
        done: set[str] = set()
        print("up", flush=True)
        while len(done) < len(QUERIES):
            for name in QUERIES:
                if name in done:
                    continue
                try:
                    if name not in running or not running[name].isActive:
                        running[name] = self.start(name)
                    if self.is_done(name):
                        running[name].stop()
                        done.add(name)
                except Exception as problem:  # whatever a kill may look like from here: the query starts again
                    print(f"{name}: {problem}", flush=True)
            time.sleep(RESTART_S)
        print("done", flush=True)


def crash_after(transactions: int) -> None:
    """End as a crash does, between the broker's commit and Spark's."""
    numbers = itertools.count(1)
    publish = publishing.Publisher.publish

    def then_crash(self: Any, *arguments: Any) -> None:
        publish(self, *arguments)
        if next(numbers) >= transactions:
            os._exit(9)

    publishing.Publisher.publish = then_crash  # type: ignore[method-assign]


def main() -> None:
    settings = json.loads(sys.argv[1])
    if settings.get("without_marker"):
        publishing.is_published_already = lambda *_: False
    if not settings.get("encodes_few_rows"):
        load.SMALL_BYTES = 0
    if settings.get("crash_after"):
        crash_after(settings["crash_after"])
    Driver(settings).run()
    # Spark's own way to end takes seconds, in which nothing is left to be seen.
    os._exit(0)


if __name__ == "__main__":
    main()
