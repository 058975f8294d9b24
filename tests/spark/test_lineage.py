"""With lineage on, what pipelines, queries and topologies write names what it was made of, and a trace follows it."""

from __future__ import annotations

import itertools
import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.client.settings import ClientSettings
from ottla.common import lineage
from ottla.spark.pipeline import Topics, pipeline
from ottla.streams import StreamsBuilder, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.testing import Broker
from ottla.testing.pipelines import Pipelines
from ottla.tracing import trace
from ottla.tracing.process import ProcessWatch, parse_process
from tests.spark import topics
from tests.tracing.process.orders import EXPECTED, MINUTE_MS, ORDERS, PLANTED, process_toml

NOW = {"availableNow": True}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


def _lineages(servers: str, topic: str) -> list[tuple[bytes, lineage.Lineage | None, list[str]]]:
    """Of each record its value, its lineage and the names of all of its headers."""
    found = []
    for _partition, _offset, _key, value, _time, *_, headers in sorted(topics.consumed(servers, topic)):
        own = dict(headers or ())
        found.append((value, lineage.parse(own.get(lineage.HEADER)), [name for name, _ in headers or ()]))
    return found


def test_rows_of_a_query_name_their_record_or_their_batch(spark: Any, servers: str, tmp_path: Path) -> None:
    source, out = topics.create(servers, 2), topics.create(servers, 2)
    topics.produce(servers, source, range(20), 2)
    stream = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("includeHeaders", "true")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 8)
        .load()
    )
    frame = stream.selectExpr(
        "key",
        "concat(partition, '/', offset) as value",
        f"'{out}' as topic",
        "array(named_struct('key', 'own', 'value', cast('x' as binary))) as headers",
        "if(offset % 2 = 0, concat_ws('/', topic, partition, offset), null) as _lineage",
    )
    name = f"exact-{next(_numbers)}"
    ottla.spark.write_stream(
        frame, name=name, bootstrap=servers, checkpoint=str(tmp_path / "c"), trigger=NOW, lineage=True
    ).awaitTermination()
    found = _lineages(servers, out)
    assert len(found) == 20
    for value, about, names in found:
        assert about is not None and about.query == name and names == ["own", lineage.HEADER]
        partition, offset = map(int, value.split(b"/"))
        if offset % 2 == 0:
            assert about.source == (source, partition, offset)
        else:
            assert any(part.has(source, partition, offset) for part in about.ranges)
            assert sum(part.end - part.start for part in about.ranges) <= 8
            assert len(about.digest) == 32
    off = f"off-{next(_numbers)}"
    plain = topics.create(servers)
    ottla.spark.write_stream(
        stream.selectExpr("value", f"'{plain}' as topic"),
        name=off,
        bootstrap=servers,
        checkpoint=str(tmp_path / "d"),
        trigger=NOW,
    ).awaitTermination()
    assert {tuple(names) for _, _, names in _lineages(servers, plain)} == {()}


@pytest.mark.slow  # the same without Spark is in tests/streams
def test_a_topology_names_the_record_that_it_was_working_on(spark: Any, servers: str, tmp_path: Path) -> None:
    """Through a repartition topic, and with the header of an earlier hop forwarded."""
    source, out, counted = (topics.create(servers, 2, name=f"{name}-{next(_numbers)}") for name in ("in", "out", "sum"))
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    words = builder.stream(source)
    words.map_values(str.upper).to(out)
    words.group_by(lambda key, value: value[:1]).count().map_values(str).to_stream().to(counted)
    application_id = f"traced-{next(_numbers)}"
    application = StreamsApplication(builder.build(), application_id=application_id, bootstrap=servers, lineage=True)
    topics.produce(servers, source, range(6), 2)
    application.run_available(spark, checkpoint=str(tmp_path / "c"))
    for value, about, _ in _lineages(servers, out):
        assert about is not None and about.source is not None and about.query == application_id
        number = int(value[1:])
        assert about.source == (source, number % 2, number // 2)
    found = trace(servers, (source, 1, 2), since_ms=0, until_ms=time.time_ns() // 1_000_000, by=["key"])
    by_topic = {hop.position.topic: hop for hop in found.hops}
    assert by_topic[out].value is not None and by_topic[out].value.text == "V5"
    assert by_topic[out].parent == (source, 1, 2) and by_topic[out].found_by == "lineage"
    # Its repartition topic is empty again by now: what was counted names the record that it began with.
    assert by_topic[counted].parent == (source, 1, 2)


@pytest.mark.slow
def test_a_thousand_orders_through_two_pipelines_are_traced_and_what_was_planted_is_found(
    spark: Any, broker: Broker
) -> None:
    tag = next(_numbers)
    names = [topics.create(broker.bootstrap_servers, 3, name=f"{word}-{tag}") for word in ("orders", "paid", "shipped")]
    orders, paid, shipped = names
    planted = {name: sorted(numbers) for name, numbers in PLANTED._asdict().items()}

    @pipeline(name=f"paying-{tag}", to=paid, lineage=True)
    def paying(topics: Topics) -> Any:
        """Loses some, doubles some, takes its time; keeps the column `record`."""
        rows = topics.stream(orders, "number int not null, id string")
        lost = [*planted["unpaid"], *planted["payment_gone"]]
        seen = rows.where(f"number not in ({', '.join(map(str, lost))})")
        twice = f"explode(if(number in ({', '.join(map(str, planted['paid_twice']))}), array(1, 2), array(1))) as copy"
        return seen.selectExpr("*", twice).selectExpr(
            "record",
            "timestampadd(MINUTE, 2, record.timestamp) as timestamp",
            "to_json(struct(number, struct(id) as order, 'paid' as status)) as value",
        )

    @pipeline(name=f"shipping-{tag}", to=shipped, lineage=True)
    def shipping(topics: Topics) -> Any:
        rows = topics.stream(paid, "number int not null, order struct<id: string>")
        seen = rows.where(f"number not in ({', '.join(map(str, planted['unshipped']))})")
        minutes = (
            f"case when number in ({', '.join(map(str, planted['shipped_late']))}) then 90 "
            f"when number in ({', '.join(map(str, planted['shipped_before_paid']))}) then -1 else 30 end"
        )
        header = "array(named_struct('key', 'order', 'value', cast(order.id as binary))) as headers"
        return seen.selectExpr(
            "record", f"timestampadd(MINUTE, {minutes}, record.timestamp) as timestamp", header, "'parcel' as value"
        )

    began_ms = time.time_ns() // 1_000_000 - 180 * MINUTE_MS
    with Pipelines(spark, broker) as pipelines:
        for number in range(ORDERS):
            value = json.dumps({"number": number, "id": f"order-{number}"})
            broker.produce(orders, value, key=f"order-{number}", timestamp_ms=began_ms + 1000 * number)
        pipelines.run(paying)
        pipelines.run(shipping)
    # What was shipped without a payment, which no pipeline would do.
    for number in PLANTED.payment_gone:
        stamp_ms = began_ms + 1000 * number + 32 * MINUTE_MS
        broker.produce(shipped, "parcel", headers={"order": f"order-{number}".encode()}, timestamp_ms=stamp_ms)
    watch = ProcessWatch(
        ClientSettings(broker.bootstrap_servers),
        parse_process(tomllib.loads(process_toml(*names))),
        is_resumable=False,
    )
    report = watch.round()
    watch.close()
    found: dict[str, set[int]] = {}
    for case in report.cases:
        for problem in case.problems:
            found.setdefault(problem, set()).add(int(case.id.decode().removeprefix("order-")))
    assert found == EXPECTED
    assert report.counts["instances"] == ORDERS

    (start,) = [record for record in broker.records(orders) if record.key == b"order-5"]
    story = trace(broker.bootstrap_servers, (orders, start.partition, start.offset), topics=names, by=["key"])
    assert [hop.position.topic for hop in story.hops] == [orders, paid, paid, shipped, shipped]
    assert all(hop.found_by == "lineage" for hop in story.hops[1:])
    assert [hop.latency_ms for hop in story.hops[1:3]] == [2 * MINUTE_MS] * 2
    assert {hop.parent for hop in story.hops[3:]} == {hop.position for hop in story.hops[1:3]}
    assert {group.group: group.verdict for group in story.hops[0].groups} == {f"paying-{tag}": "read"}
