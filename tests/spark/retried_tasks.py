"""A process with a query whose tasks fail once, after they have written and counted, and are tried again. Its one line
says what the query counted.

    python -m tests.spark.retried_tasks SERVERS SOURCE TARGET FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import ottla.spark
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts
from ottla.spark.sink.streaming import write_stream
from ottla.spark.source.ranges import RangeReading

TRIES = 2


class FailsOnce:
    """A copy of what it reads. Each task has a file that says how often it has begun."""

    def __init__(self, reading: RangeReading, folder: Path) -> None:
        self._reading = reading
        self._folder = folder

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in self._reading.records(rows):
            counts.update({RECORDS_IN: batch.num_rows, "rows": batch.num_rows})
            yield batch.select(["key", "value"])
        file = self._folder / f"begun-{context.partitionId()}"
        file.write_text("x" + (file.read_text() if file.exists() else ""))
        if len(file.read_text()) < TRIES:
            raise RuntimeError("this attempt fails")


def main(servers: str, source: str, target: str, folder: str) -> None:
    spark = ottla.spark.session(app="retried", master=f"local[2,{TRIES}]", **{"spark.ui.enabled": "false"})
    options = {"kafka.bootstrap.servers": servers, "subscribe": source, "startingOffsets": "earliest"}
    frame = spark.readStream.format("ottla").options(**options, rangesOnly="true", wholePartitions="true").load()
    query = write_stream(
        frame,
        name="retried",
        bootstrap=servers,
        topic=target,
        checkpoint=f"{folder}/checkpoint",
        trigger={"availableNow": True},
        work=FailsOnce(RangeReading.of(options), Path(folder)),
    )
    query.awaitTermination()
    batches = [json.loads(each.json) for each in query.recentProgress]
    print(json.dumps([[each["numInputRows"], each["observedMetrics"]] for each in batches]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
