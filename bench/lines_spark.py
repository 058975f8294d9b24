"""Reading with Spark: our source against Spark's own connector, in one JVM, from one topic, into nothing.

Both read the same records of the same broker in turn, on `local[*]`, each with the settings that it comes with.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bench import frames
from bench.contenders import Contender
from bench.measure import Arm, Comparison, Values, throughput
from tests.support.kafka_jars import spark_avro_jars, spark_connector_jars

RECORD_BYTES = 100
BATCH_RECORDS = 16_384 // (RECORD_BYTES + 12)
PARTITIONS = 4
RECORDS = 3_000_000
RECORDS_PER_TRIGGER = 500_000
IN_FLIGHT = 5
WARM_UPS = 2
OURS, THEIRS = "ottla", "kafka"


def why_no_spark() -> str | None:
    if shutil.which("java") is None:
        return "Java is not installed"
    if not spark_connector_jars():
        return "Spark's Kafka connector is not there: run `python tools/fetch_jars.py spark-kafka`"
    return None


@cache
def session(source: str) -> Any:
    """Ours as `ottla.spark.session` makes it. The connector has one of its own in the same JVM: what we set for a query
    does not reach it."""
    import ottla.spark

    spark = ottla.spark.session(
        app="ottla-bench",
        **{
            "spark.ui.enabled": "false",
            "spark.driver.memory": "2g",
            "spark.jars": ",".join(map(str, [*spark_connector_jars(), *spark_avro_jars()])),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark if source == OURS else spark.newSession()


@cache
def filled_topic(contender: Contender) -> tuple[str, int]:
    """The name of a topic, and how many records it has."""
    name = "bench-spark"
    requests = max(PARTITIONS, int(RECORDS * contender.scale.client_share) // BATCH_RECORDS)
    with contender.connect() as connection:
        topic_id = connection.create_topic(name, PARTITIONS, {})
    batch = frames.batch(BATCH_RECORDS, RECORD_BYTES)
    path = frames.write(
        contender.scratch("spark"), [frames.produce(topic_id, number, batch) for number in range(PARTITIONS)]
    )
    contender.load("produce", frames=path, inflight=IN_FLIGHT, seconds=600, requests=requests)
    return name, requests * BATCH_RECORDS


def _options(contender: Contender, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": contender.broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}


def read_batch(contender: Contender, source: str) -> Values:
    topic, records = filled_topic(contender)
    frame = session(source).read.format(source).options(**_options(contender, topic)).load()
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return {"read": records / (time.perf_counter() - started) / 1e3}


def read_stream(contender: Contender, source: str) -> Values:
    """All that is there, in micro-batches, into nothing. Rows and times are those of Spark's own progress reports, so
    that starting the query is not counted: a stream is started once."""
    topic, records = filled_topic(contender)
    options = _options(contender, topic) | {"maxOffsetsPerTrigger": str(RECORDS_PER_TRIGGER)}
    frame = session(source).readStream.format(source).options(**options).load()
    checkpoint = Path(tempfile.mkdtemp(prefix="checkpoint-", dir=contender.broker.folder))
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    elapsed_s = busy_s(query)
    seen = sum(one.numInputRows for one in query.recentProgress)
    shutil.rmtree(checkpoint)
    if seen != records:
        raise RuntimeError(f"{source} read {seen} rows of {records}")
    return {"read": records / elapsed_s / 1e3}


def busy_s(query: Any) -> float:
    """How long the micro-batches of a query took that had something to do."""
    return float(sum(one.durationMs["triggerExecution"] for one in query.recentProgress if one.numInputRows)) / 1e3


def require_spark() -> None:
    reason = why_no_spark()
    if reason is not None:
        raise RuntimeError(reason)


def warmed_arm(label: str, measure: Callable[[], Values]) -> Arm:
    def warm_up() -> None:
        for _ in range(WARM_UPS):
            measure()

    return Arm(label, measure, warm_up)


def _line(name: str, title: str, contender: Contender, read: Callable[[Contender, str], Values]) -> Comparison:
    require_spark()

    def arm(label: str, source: str) -> Arm:
        return warmed_arm(label, lambda: read(contender, source))

    metrics = [throughput("read", "k rows/s", goal=1.5, digits=0)]
    return Comparison(name, title, metrics, [arm("Spark's connector", THEIRS), arm("ottla", OURS)])


def batch_line(contender: Contender) -> Comparison:
    return _line("spark-batch", f"Spark reads {RECORD_BYTES} B records, batch", contender, read_batch)


def stream_line(contender: Contender) -> Comparison:
    return _line("spark-stream", f"Spark reads {RECORD_BYTES} B records, streaming", contender, read_stream)
