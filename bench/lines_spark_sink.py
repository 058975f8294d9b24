"""Writing with Spark: our exactly-once sink against Spark's own at-least-once one, each behind its own source.

`spark-sink` copies a topic in large micro-batches. `spark-latency` sends records at a steady rate through a query that
does nothing but copy, and takes the time from a record's creation to its arrival at a plain consumer. Both queries have
the settings that they come with; in `spark-latency-N-same` the connector has the checkpoint setting of ours as well.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka

from bench.contenders import Contender
from bench.lines_spark import (
    OURS,
    PARTITIONS,
    RECORD_BYTES,
    THEIRS,
    busy_s,
    filled_topic,
    require_spark,
    session,
    warmed_arm,
)
from bench.measure import Arm, Comparison, Values, cost, throughput

RECORDS_PER_TRIGGER = 500_000
RATES = (1, 100, 1_000)
LATENCY_WARM_UP_S, LATENCY_S = 4.0, 10.0
_OUT_PARTITIONS = 2


def _copy(
    contender: Contender, source: str, topics: tuple[str, str], folder: Path, options: dict[str, str], **trigger: Any
) -> Any:
    """A query that copies the first topic to the second."""
    import ottla.spark

    servers = contender.broker.bootstrap
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topics[0],
        "startingOffsets": "earliest",
        **options,
    }
    frame = session(source).readStream.format(source).options(**options).load().select("key", "value")
    if source == OURS:
        return ottla.spark.write_stream(
            frame,
            name=f"bench-{folder.name}",
            bootstrap=servers,
            topic=topics[1],
            checkpoint=str(folder),
            trigger=trigger or None,
        )
    writer = frame.writeStream.format(THEIRS).option("kafka.bootstrap.servers", servers).option("topic", topics[1])
    writer = writer.option("checkpointLocation", str(folder))
    return (writer.trigger(**trigger) if trigger else writer).start()


@contextmanager
def _checkpoint(contender: Contender) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sink-", dir=contender.broker.folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def copy_all(contender: Contender, source: str) -> Values:
    topic, records = filled_topic(contender)
    busy, whole = copy_topic(contender, source, topic, records, maxOffsetsPerTrigger=str(RECORDS_PER_TRIGGER))
    return {"written": records / busy / 1e3, "written with start": records / whole / 1e3}


def copy_topic(contender: Contender, source: str, topic: str, records: int, **options: str) -> tuple[float, float]:
    """Seconds by Spark's own progress reports, as for reading: a stream is started once. And those of all of it."""
    with contender.topic(PARTITIONS) as out, _checkpoint(contender) as folder:
        started = time.perf_counter()
        query = _copy(contender, source, (topic, out.name), folder, options, availableNow=True)
        query.awaitTermination()
        whole_s = time.perf_counter() - started
        written = _visible(contender, out.name)
        elapsed_s = busy_s(query)
    if written < records:
        raise RuntimeError(f"{source} wrote {written} records of {records}")
    return elapsed_s, whole_s


def _visible(contender: Contender, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": contender.broker.bootstrap, "group.id": "bench"})
    partitions = [confluent_kafka.TopicPartition(topic, number) for number in range(PARTITIONS)]
    total = sum(consumer.get_watermark_offsets(one, 20)[1] for one in partitions)
    consumer.close()
    return int(total)


def latency(contender: Contender, source: str, per_second: int) -> Values:
    """From the moment a record is given to a producer until a consumer of committed records has it."""
    with (
        contender.topic(_OUT_PARTITIONS) as topic,
        contender.topic(_OUT_PARTITIONS) as out,
        _checkpoint(contender) as folder,
    ):
        query = _copy(contender, source, (topic.name, out.name), folder, {})
        arrivals = Arrivals(contender.broker.bootstrap, out.name)
        send(contender.broker.bootstrap, topic.name, per_second)
        arrivals.stop()
        query.stop()
    return percentiles(arrivals.after(LATENCY_WARM_UP_S), source)


def percentiles(milliseconds: list[float], source: str) -> Values:
    taken = sorted(milliseconds)
    if not taken:
        raise RuntimeError(f"nothing arrived through {source}")
    return {"p50": taken[len(taken) // 2], "p99": taken[min(len(taken) - 1, len(taken) * 99 // 100)]}


def send(bootstrap: str, topic: str, per_second: int, partitions: int = _OUT_PARTITIONS, keys: int = 0) -> None:
    """With `keys` so many of them, in turn; else none."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    started = time.monotonic()
    for number in range(int(per_second * (LATENCY_WARM_UP_S + LATENCY_S))):
        time.sleep(max(0.0, started + number / per_second - time.monotonic()))
        text = b"%.6f %.6f " % (time.time(), time.monotonic() - started)
        key = b"key%d" % (number % keys) if keys else None
        producer.produce(topic, text.ljust(RECORD_BYTES, b"x"), key, partition=number % partitions)
        producer.poll(0)
    producer.flush(20)


class Arrivals:
    """Reads a topic in a thread and keeps (seconds since the first record was sent, milliseconds taken)."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int = _OUT_PARTITIONS, *, from_end: bool = False
    ) -> None:
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_committed",
             "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}
        )  # fmt: skip
        places = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)]
        if from_end:
            for place in places:
                place.offset = self._consumer.get_watermark_offsets(place, 20)[1]
        self._consumer.assign(places)
        self._rows: list[tuple[float, float]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and not message.error():
                created, since = map(float, message.value().split()[:2])
                self._rows.append((since, (time.time() - created) * 1e3))

    def after(self, seconds: float) -> list[float]:
        return [taken for since, taken in self._rows if since >= seconds]

    def stop(self) -> None:
        time.sleep(2.0)  # the last records are on their way
        self._stopping.set()
        self._thread.join()
        self._consumer.close()


def _choose_checkpoint_writer(*, is_ours: bool) -> None:
    from ottla.spark.sink.streaming import FILE_MANAGER, LOCAL_FILE_MANAGER

    if is_ours:
        session(THEIRS).conf.set(FILE_MANAGER, LOCAL_FILE_MANAGER)
    else:
        session(THEIRS).conf.unset(FILE_MANAGER)


def sink_line(contender: Contender) -> Comparison:
    require_spark()

    def arm(label: str, source: str) -> Arm:
        return warmed_arm(label, lambda: copy_all(contender, source))

    return Comparison(
        "spark-sink",
        f"Spark copies {RECORD_BYTES} B records, exactly once against at least once",
        [
            throughput("written", "k rows/s", goal=2.0, digits=0),
            throughput("written with start", "k rows/s", goal=None, digits=0),
        ],
        [arm("Spark's connector", THEIRS), arm("ottla", OURS)],
    )


def latency_line(contender: Contender, per_second: int, *, has_same_setting: bool = False) -> Comparison:
    require_spark()

    def measure(source: str) -> Values:
        if source == THEIRS:
            _choose_checkpoint_writer(is_ours=has_same_setting)
        return latency(contender, source, per_second)

    def arm(label: str, source: str) -> Arm:
        return warmed_arm(label, lambda: measure(source))

    goal = None if has_same_setting else 1.0
    return Comparison(
        f"spark-latency-{per_second}" + ("-same" if has_same_setting else ""),
        f"Spark copies {per_second:,} records/s, record in to record out"
        + (", same checkpoint setting" if has_same_setting else ""),
        [cost("p50", "ms", goal=goal, digits=0), cost("p99", "ms", goal=goal, digits=0)],
        [arm("Spark's connector", THEIRS), arm("ottla", OURS)],
    )
