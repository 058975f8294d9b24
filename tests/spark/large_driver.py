"""A driver that may hold two megabytes of results, and copies a topic: a few records at a time, each `times` times.

    python -m tests.spark.large_driver '{"bootstrap": ..., "folder": ..., "source": ..., "target": ..., "times": ...}'

`spark.driver.maxResultSize` counts from the start of a Spark, so this is a process of its own. Says how every batch
came to the driver: `here` (as rows) or `spooled`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import ottla.spark
from ottla.spark.sink import streaming

PER_BATCH = 200


def say(word: str, function: Any) -> Any:
    def said(*arguments: Any) -> Any:
        result = function(*arguments)
        if result is not None:
            print("came", word, flush=True)
        return result

    return said


def main() -> None:
    settings = json.loads(sys.argv[1])
    streaming.spooled = say("spooled", streaming.spooled)  # type: ignore[assignment]
    streaming.encode_here = say("here", streaming.encode_here)  # type: ignore[assignment]
    spark = ottla.spark.session(
        app="large", master="local[2]", **{"spark.ui.enabled": False, "spark.driver.maxResultSize": "2m"}
    )
    spark.sparkContext.setLogLevel("OFF")
    frame = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", settings["bootstrap"])
        .option("subscribe", settings["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
        .load()
    )
    times = f"if(offset < {settings['from']}, 1, {settings['times']})"
    # Every copy is another text that does not compress.
    frame = frame.selectExpr("key", f"explode(sequence(1, {times})) as copy").selectExpr(
        "key", "concat_ws('', transform(sequence(1, 16), n -> sha2(concat(key, ' ', copy, ' ', n), 512))) as value"
    )
    query = ottla.spark.write_stream(
        frame,
        name="large",
        bootstrap=settings["bootstrap"],
        topic=settings["target"],
        checkpoint=settings["folder"],
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    print("done", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
