"""What tracing costs and how fast it looks: a search by the kernel against polling, and lineage headers on and off.

`trace-search` looks through a topic of JSON records for an order that is not there, so that all is read: by our search,
and by a confluent-kafka consumer that parses each value, as consoles do. `spark-sink-lineage` copies a topic with a
header in every record that names the record it was made of, against the same copy without.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path

import confluent_kafka

from bench.contenders import Contender
from bench.lines_spark import OURS, PARTITIONS, RECORD_BYTES, busy_s, filled_topic, require_spark, session, warmed_arm
from bench.lines_spark_sink import RECORDS_PER_TRIGGER
from bench.measure import Arm, Comparison, Values, throughput

SEARCHED_RECORDS = 300_000
_VALUE = {"order": {"id": 0, "customer": "x" * 40}, "items": [{"sku": "a" * 20, "count": 3}], "note": "n" * 200}


@cache
def _orders(contender: Contender) -> tuple[str, int, int]:
    """A topic of orders, how many records it has, and the bytes of their values."""
    name = "bench-trace"
    count = int(SEARCHED_RECORDS * contender.scale.client_share)
    with contender.connect() as connection:
        connection.create_topic(name, PARTITIONS, {})
    producer = confluent_kafka.Producer({"bootstrap.servers": contender.broker.bootstrap, "linger.ms": 20})
    size = 0
    for number in range(count):
        value = json.dumps({**_VALUE, "order": {"id": number, "customer": "x" * 40}})
        size += len(value)
        while True:
            try:
                producer.produce(name, value, f"k{number}")
                break
            except BufferError:
                producer.poll(0.1)
    producer.produce(name, json.dumps({"order": {"id": "nowhere"}}), partition=0)
    producer.flush(120)
    return name, count, size


def search(contender: Contender) -> Values:
    from ottla.tracing import Limits, trace

    topic, count, size = _orders(contender)
    start = _last(contender, topic)
    began_s = time.perf_counter()
    found = trace(
        contender.broker.bootstrap,
        (topic, 0, start),
        by=["json:order.id"],
        topics=[topic],
        with_readers=False,
        limits=Limits(seconds_max=600),
    )
    took_s = time.perf_counter() - began_s
    if found.records != count + 1 or len(found.hops) != 1:
        raise RuntimeError(f"{found.records} records were searched, {len(found.hops)} found")
    return {"searched": size / took_s / 1e6}


def poll(contender: Contender) -> Values:
    topic, count, size = _orders(contender)
    began_s = time.perf_counter()
    settings = {
        "bootstrap.servers": contender.broker.bootstrap,
        "group.id": uuid.uuid4().hex,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    seen = found = 0
    while seen < count + 1:
        for message in consumer.consume(500, 0.05):
            seen += 1
            found += json.loads(message.value())["order"]["id"] == "nowhere"
    took_s = time.perf_counter() - began_s
    consumer.close()
    return {"searched": size / took_s / 1e6}


def _last(contender: Contender, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": contender.broker.bootstrap, "group.id": "bench"})
    end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), 20)[1]
    consumer.close()
    return int(end) - 1


def search_line(contender: Contender) -> Comparison:
    return Comparison(
        "trace-search",
        "a topic of JSON is searched for a field, values per second",
        [throughput("searched", "MB/s", goal=3.0, digits=0)],
        [
            Arm("confluent-kafka, polling", lambda: poll(contender), lambda: poll(contender)),
            Arm("ottla trace", lambda: search(contender), lambda: search(contender)),
        ],
    )


def copy(contender: Contender, *, has_lineage: bool) -> Values:
    import ottla.spark

    topic, records = filled_topic(contender)
    servers = contender.broker.bootstrap
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(RECORDS_PER_TRIGGER),
    }
    frame = session(OURS).readStream.format(OURS).options(**options).load()
    columns = ["key", "value"]
    if has_lineage:
        columns.append("concat_ws('/', topic, partition, offset) as _lineage")
    with contender.topic(PARTITIONS) as out:
        folder = Path(tempfile.mkdtemp(prefix="lineage-", dir=contender.broker.folder))
        query = ottla.spark.write_stream(
            frame.selectExpr(*columns),
            name=f"bench-{folder.name}",
            bootstrap=servers,
            topic=out.name,
            checkpoint=str(folder),
            trigger={"availableNow": True},
            lineage=has_lineage,
        )
        query.awaitTermination()
        took_s = busy_s(query)
        shutil.rmtree(folder, ignore_errors=True)
    return {"written": records / took_s / 1e3}


def lineage_line(contender: Contender) -> Comparison:
    require_spark()
    return Comparison(
        "spark-sink-lineage",
        f"Spark copies {RECORD_BYTES} B records, each with a header that names its source",
        [throughput("written", "k rows/s", goal=None, digits=0)],
        [
            warmed_arm("without lineage", lambda: copy(contender, has_lineage=False)),
            warmed_arm("with lineage", lambda: copy(contender, has_lineage=True)),
        ],
    )
