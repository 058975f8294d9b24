"""The schema registry: how fast it registers and answers, and how fast its values become columns.

Decoding is counted in CPU time of one core, from values as a topic has them to Arrow: our program of both schemas
against fastavro, row by row, whose rows are then made columns. In Spark it is the whole way, from a frame of values
that Spark keeps in memory into nothing, against Spark's own `from_avro`, which has to be given one schema for all.
"""

from __future__ import annotations

import http.client
import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from bench import lines_spark
from bench.contenders import Contender
from bench.measure import Arm, Comparison, Values, throughput
from tests.support.kafka_jars import spark_avro_jars

VALUES = 50_000
SPARK_VALUES = 2_000_000
REGISTER_SECONDS = 5.0
DECODE_SECONDS = 2.0
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "euro", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
                },
            },
        },
    ],
}
HEAD = b"\x00\x00\x00\x00\x07"


# --- registrations and look-ups


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> Any:
    connection.request(method, path, None if body is None else json.dumps(body))
    reply = connection.getresponse()
    data = reply.read()
    if reply.status != 200:
        raise RuntimeError(f"{method} {path}: {reply.status} {data!r}")
    return json.loads(data)


def measure_instance(url: str, seconds: float, name: Callable[[], str]) -> Values:
    """One client, one request after the other: new schemas, each in a subject of its own, then schemas by their ids."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    ids: list[int] = []
    started = time.perf_counter()
    while not ids or time.perf_counter() - started < seconds:
        unique = name()
        text = json.dumps({"type": "fixed", "name": unique, "size": 4})
        ids.append(ask(connection, "POST", f"/subjects/{unique}/versions", {"schema": text})["id"])
    registered = len(ids) / (time.perf_counter() - started)
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds / 2:
        ask(connection, "GET", f"/schemas/ids/{ids[count % len(ids)]}")
        count += 1
    connection.close()
    return {"registrations": registered, "look-ups": count / (time.perf_counter() - started)}


@contextmanager
def two_instances(bootstrap: str) -> Iterator[tuple[str, str]]:
    """As processes: the writer, and one that forwards to it. Whoever wrote before goes on writing: the first has to
    have written something when the second comes, else the one with the lower address writes."""
    from tests.registry.ordeal import InstanceProcess

    first, second = (InstanceProcess(bootstrap, "_bench_schemas", 10_000) for _ in range(2))
    try:
        first.start()
        measure_instance(first.url, 0.0, lambda: "S")
        second.start()
        yield first.url, second.url
    finally:
        first.end()
        second.end()


def instances_line(contender: Contender, enter: Callable[[Any], Any]) -> Comparison:
    writer, other = enter(two_instances(contender.broker.bootstrap))
    counter = iter(range(10**9))

    def arm(label: str, url: str) -> Arm:
        seconds = REGISTER_SECONDS * contender.scale.client_share

        def measure(share: float = 1.0) -> Values:
            return measure_instance(url, seconds * share, lambda: f"S{next(counter)}")

        # The first waits for the instances to have chosen who writes.
        return Arm(label, measure, lambda: measure(0.2))

    metrics = [
        throughput("registrations", "/s", goal=None, digits=0),
        throughput("look-ups", "/s", goal=None, digits=0),
    ]
    return Comparison(
        "registry",
        "one client, one request after the other",
        metrics,
        [arm("an instance that forwards", other), arm("the writer", writer)],
        notes="a registration is answered when it was read back from the topic",
    )


# --- values to columns


@cache
def values(count: int) -> list[bytes]:
    import fastavro

    schema = fastavro.parse_schema(SCHEMA)
    found = []
    for number in range(count):
        out = io.BytesIO()
        out.write(HEAD)
        fastavro.schemaless_writer(
            out,
            schema,
            {
                "id": number,
                "customer": f"customer-{number % 1_000}",
                "euro": number * 0.5,
                "paid": number % 2 == 0,
                "note": None if number % 3 else "a note",
                "at": 1_700_000_000_000 + number,
                "colour": "RED",
                "lines": [{"sku": f"sku-{number}", "count": 2}, {"sku": "z", "count": 3}],
            },
        )
        found.append(out.getvalue())
    return found


def _columns() -> Any:
    from ottla.avro.parse import parse
    from ottla.schemas.avro.columns import columns_of

    schema = parse(json.dumps(SCHEMA))
    return schema, columns_of(schema)


def decode_by_program(seconds: float) -> Values:
    import pyarrow as pa

    from ottla.kernel.avro import AvroDecoder
    from ottla.schemas.avro.resolving import resolve

    schema, columns = _columns()
    program = resolve(schema, schema, columns).program
    decoder = AvroDecoder(columns.shapes, columns.type)
    array = pa.array(values(VALUES), pa.binary())
    return _counted(lambda: len(decoder.decode(array, {7: program})[0]), seconds)


def decode_row_by_row(seconds: float) -> Values:
    import fastavro
    import pyarrow as pa

    _, columns = _columns()
    schema = fastavro.parse_schema(SCHEMA)

    def decode() -> int:
        rows = [fastavro.schemaless_reader(io.BytesIO(memoryview(data)[5:]), schema, None) for data in values(VALUES)]
        return len(pa.array(rows, columns.type))

    return _counted(decode, seconds)


def _counted(decode: Callable[[], int], seconds: float) -> Values:
    count, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        count += decode()
    return {"decoded": count / (time.process_time() - started) / 1e3}


def decode_line() -> Comparison:
    def arm(label: str, decode: Callable[[float], Values]) -> Arm:
        return Arm(label, lambda: decode(DECODE_SECONDS), lambda: decode(DECODE_SECONDS / 10))

    return Comparison(
        "avro-decode",
        "Avro of a registry to Arrow, one core",
        [throughput("decoded", "k rows/s", goal=3.0, digits=0)],
        [arm("fastavro, row by row", decode_row_by_row), arm("ottla", decode_by_program)],
        notes="records of eight fields, one an array of two records",
    )


# --- in Spark


@cache
def _frame(spark: Any, count: int) -> Any:
    """Values that Spark has in memory."""
    some = values(min(count, VALUES))
    frame = spark.createDataFrame([(data,) for data in some], "value binary")
    frame = frame.crossJoin(spark.range(max(1, count // len(some)))).select("value").repartition(8).cache()
    frame.count()
    return frame


def spark_line(contender: Contender, enter: Callable[[Any], Any]) -> Comparison:
    from ottla.testing import Registry

    lines_spark.require_spark()
    if not spark_avro_jars():
        raise RuntimeError("Spark's Avro is not there: run `python tools/fetch_jars.py spark-avro`")
    registry = enter(Registry(contender.broker.bootstrap))
    connection = http.client.HTTPConnection(registry.url.removeprefix("http://"), timeout=60)
    number = ask(connection, "POST", "/subjects/bench-value/versions", {"schema": json.dumps(SCHEMA)})["id"]
    count = int(SPARK_VALUES * contender.scale.client_share)
    spark = lines_spark.session(lines_spark.OURS)

    def measured(decoded: Any) -> Values:
        frame = _frame(spark, count)
        started = time.perf_counter()
        frame.select(decoded(frame).alias("order")).write.format("noop").mode("overwrite").save()
        return {"decoded": frame.count() / (time.perf_counter() - started) / 1e3}

    def ours(frame: Any) -> Any:
        from pyspark.sql import functions as F

        import ottla.spark

        there = ottla.spark.SchemaRegistry(registry.url).of("bench-value")
        framed = F.concat(F.lit(b"\x00" + number.to_bytes(4, "big")), F.substring("value", 6, 1 << 30))
        return ottla.spark.from_registry(framed, there, mode="PERMISSIVE")

    def sparks(frame: Any) -> Any:
        from pyspark.sql import functions as F
        from pyspark.sql.avro.functions import from_avro

        return from_avro(F.substring("value", 6, 1 << 30), json.dumps(SCHEMA))

    return Comparison(
        "spark-avro",
        "Spark decodes Avro from memory into nothing",
        [throughput("decoded", "k rows/s", goal=None, digits=0)],
        [
            lines_spark.warmed_arm("Spark's from_avro", lambda: measured(sparks)),
            lines_spark.warmed_arm("ottla", lambda: measured(ours)),
        ],
        notes="from_avro runs in the JVM and takes one writer's schema; ours asks the registry, and reads any writer",
    )
