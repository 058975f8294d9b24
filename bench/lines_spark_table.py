"""What a table costs a micro-batch: records of a stream are joined with it, while some of its keys change.

Every micro-batch has the same records and the same number of changes, whatever the table's size. `table-size` compares
a table of a thousand keys with one of a million, whose rows are looked up: the goal is that both cost the same.
`table-whole` compares the million with reading the whole topic for every micro-batch.

The times are those of Spark's progress reports, so they have all of a batch in them: finding out that the table has
changed, reading what is new, the join, the transaction. The queries are started once; that is not counted.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from functools import cache
from typing import Any

import confluent_kafka

from bench.contenders import Contender
from bench.lines_spark import OURS, require_spark, session
from bench.measure import Arm, Comparison, Values, cost

FEW, MANY = 1_000, 1_000_000
RECORDS, CHANGES = 1_000, 100
BATCHES, WARM_UPS = 8, 8
_COLUMNS = "customer string, country string"
_WAIT_S_MAX = 600


class JoinQuery:
    """A query that joins orders with a table of so many customers, and runs until the benchmark ends."""

    def __init__(self, contender: Contender, keys: int, *, reads_whole: bool) -> None:
        import ottla.spark
        from ottla.spark.pipeline.topics import Topics

        self._keys = keys
        self._servers = contender.broker.bootstrap
        self._name = f"bench-table-{keys}{'-whole' if reads_whole else ''}"
        self._orders, self._customers, out = (f"{self._name}-{part}" for part in ("orders", "customers", "out"))
        with contender.connect() as connection:
            for topic in (self._orders, self._customers, out):
                connection.create_topic(topic, 2, {})
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._servers, "linger.ms": 20, "queue.buffering.max.messages": 200_000}
        )
        self._change(range(keys))
        topics = Topics(session(OURS), {"kafka.bootstrap.servers": self._servers}, self._name, "unused")
        table = (
            whole_table(self._servers, self._customers)
            if reads_whole
            else topics.table(self._customers, _COLUMNS, by="customer")
        )
        joined = topics.stream(self._orders, "customer string, euro double").join(table, "customer")
        self._query = ottla.spark.write_stream(
            joined.selectExpr("to_json(struct(customer, euro, country)) as value"),
            name=self._name,
            bootstrap=self._servers,
            topic=out,
            checkpoint=tempfile.mkdtemp(prefix="table-", dir=contender.broker.folder),
            tables=topics.tables,
        )
        self._turn = 0

    def _change(self, customers: range) -> None:
        for one in customers:
            row = json.dumps({"customer": f"c{one % self._keys}", "country": f"land {one % 97}"})
            self._producer.produce(self._customers, row, f"c{one % self._keys}", on_delivery=None)
            if one % 1_000 == 0:
                self._producer.poll(0)
            if len(self._producer) > 100_000:
                self._producer.flush(60)
        self._producer.flush(60)

    def batch_ms(self) -> float:
        """One micro-batch, after some keys have changed."""
        self._turn += 1
        self._change(range(self._turn * CHANGES, (self._turn + 1) * CHANGES))
        # One after the other may be read by two batches: all in one transaction is not.
        producer = _transactional(self._servers, self._name)
        producer.begin_transaction()
        for one in range(RECORDS):
            row = json.dumps({"customer": f"c{(one * 7919 + self._turn) % self._keys}", "euro": 1.0})
            producer.produce(self._orders, row, partition=0)
        producer.commit_transaction(60)
        deadline = time.monotonic() + _WAIT_S_MAX
        while time.monotonic() < deadline:
            last = self._query.lastProgress
            if last is not None and last["numInputRows"] and last["batchId"] != self._seen:
                self._seen = last["batchId"]
                return float(last["durationMs"]["triggerExecution"])
            if not self._query.isActive:
                self._query.awaitTermination()
            time.sleep(0.02)
        raise RuntimeError(f"{self._name} did not come to an end of its batch")

    _seen: Any = None


@cache
def _transactional(servers: str, name: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": f"{name}-feeder"})
    producer.init_transactions(60)
    return producer


def whole_table(servers: str, topic: str) -> Any:
    """The last value of each key, from all records of the topic."""
    from pyspark.sql import functions as F

    raw = session(OURS).read.format(OURS).options(**{"kafka.bootstrap.servers": servers, "subscribe": topic}).load()
    newest = F.max_by(F.struct("value"), "offset").alias("newest")
    rows = raw.where("key is not null").groupBy("key").agg(newest)
    return rows.select(F.from_json(F.col("newest.value").cast("string"), _COLUMNS).alias("row")).select("row.*")


@cache
def _query(contender: Contender, keys: int, reads_whole: bool) -> JoinQuery:
    return JoinQuery(contender, keys, reads_whole=reads_whole)


def _arm(label: str, contender: Contender, keys: int, *, reads_whole: bool = False) -> Arm:
    def measure() -> Values:
        query = _query(contender, keys, reads_whole)
        return {"batch": statistics.median(query.batch_ms() for _ in range(BATCHES))}

    def warm_up() -> None:
        for _ in range(WARM_UPS):
            _query(contender, keys, reads_whole).batch_ms()

    return Arm(label, measure, warm_up)


def size_line(contender: Contender) -> Comparison:
    require_spark()
    return Comparison(
        "table-size",
        f"{RECORDS:,} records joined with a table, {CHANGES} keys of it changed",
        [cost("batch", "ms", goal=0.9, digits=0)],
        [_arm(f"{FEW:,} keys", contender, FEW), _arm(f"{MANY:,} keys", contender, MANY)],
    )


def whole_line(contender: Contender) -> Comparison:
    require_spark()
    return Comparison(
        "table-whole",
        f"{RECORDS:,} records joined with a table of {MANY:,} keys, {CHANGES} of them changed",
        [cost("batch", "ms", goal=1.5, digits=0)],
        [_arm("whole topic", contender, MANY, reads_whole=True), _arm("ottla", contender, MANY)],
    )
