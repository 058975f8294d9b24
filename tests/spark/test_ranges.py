"""`rangesOnly`: the source gives ranges of offsets, and whoever reads them gets what the source itself reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytest.importorskip("pyspark")

from ottla.client.fetching import DataLoss, OffsetRange, UnreadableRecords
from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, failure_in
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.records.record import Record, build_batch
from ottla.spark.source.datasource import OttlaDataSource
from ottla.spark.source.ranges import RangeReading, ranges_in, rows_of
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.planned import LIMIT, source
from tests.support.scripted_broker import ScriptedBroker


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def given(servers: str, topic: str, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest", **options}


def planned(servers: str, topic: str, start: Any = None, end: Any = None, **options: Any) -> list[Any]:
    """The rows that Spark gets for a batch: one record batch for each of its tasks."""
    reader = source(servers, topic, rangesOnly="true", **options)
    start = reader.initialOffset() if start is None else start
    end = reader.latestOffset(start, LIMIT) if end is None else end
    rows = [row for split in reader.partitions(start, end) for row in reader.read(split)]
    reader.stop()
    return rows


def records(reading: RangeReading, rows: list[Any]) -> list[dict[str, Any]]:
    return [record for batch in reading.records(rows) for record in batch.to_pylist()]


@pytest.mark.parametrize("topic_id", [None, b"0123456789abcdef"])
def test_ranges_come_back_as_they_were(topic_id: Any) -> None:
    ranges = [OffsetRange("größe", 3, 0, 2**40, topic_id), OffsetRange("b", 0, 7, 8, topic_id)]
    assert ranges_in([rows_of(ranges), rows_of([])]) == ranges


def test_the_columns_are_those_of_ranges() -> None:
    options = {"subscribe": "a", "includeHeaders": "true"}
    assert OttlaDataSource({**options, "rangesOnly": "true"}).schema().names == [
        "topic", "partition", "start", "end", "topicId",
    ]  # fmt: skip
    assert "value" in OttlaDataSource({**options, "rangesOnly": "false"}).schema().names
    with pytest.raises(OttlaError, match="rangesOnly is true or false, not 'maybe'"):
        OttlaDataSource({**options, "rangesOnly": "maybe"}).schema()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_is_read_is_what_a_consumer_reads(servers: str, isolation: str) -> None:
    """All codecs, headers, nulls, empty fields, committed and aborted transactions."""
    topic = topics.create(servers, 3)
    topics.produce_everything(servers, topic, 3)
    level = {"kafka.isolation.level": isolation}
    reading = RangeReading.of(given(servers, topic, includeHeaders="true", **level))
    found = {
        (
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            round(row["timestamp"].timestamp() * 1000),
            row["timestampType"],
            tuple((one["key"], one["value"]) for one in row["headers"]) if row["headers"] else None,
        )
        for row in records(reading, planned(servers, topic, kafka__isolation__level=isolation))
    }
    assert found == topics.consumed(servers, topic, isolation)


def test_without_headers_there_is_no_column_for_them(servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(3))
    (batch,) = RangeReading.of(given(servers, topic)).records(planned(servers, topic))
    assert batch.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


def test_a_batch_that_runs_again_has_the_same_ranges(servers: str) -> None:
    """Also when there are more records by then, and more partitions."""
    topic = topics.create(servers, 2)
    topics.produce(servers, topic, range(20), 2)
    reader = source(servers, topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, LIMIT)
    reader.stop()
    first = ranges_in(planned(servers, topic, start, end, wholePartitions="true"))
    topics.produce(servers, topic, range(20, 40), 2)
    topics.grow(servers, topic, 3)
    assert ranges_in(planned(servers, topic, start, end, wholePartitions="true")) == first
    assert sorted(each[:4] for each in first) == [(topic, 0, 0, 10), (topic, 1, 0, 10)]
    assert all(each.topic_id for each in first)


def test_a_topic_made_anew_is_not_read_for_the_one_that_was_planned(servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(6))
    rows = planned(servers, topic)
    topics.delete(servers, topic)
    topics.create(servers, name=topic)
    topics.produce(servers, topic, range(100, 108))
    with pytest.raises(DataLoss, match=f"topic {topic} was deleted and made anew before it was read") as raised:
        records(RangeReading.of(given(servers, topic)), rows)
    assert failure_in(raised.value) is Failure.DATA
    assert records(RangeReading.of(given(servers, topic, failOnDataLoss="false")), rows) == []


def test_records_that_are_gone_by_then_are_told(servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(6))
    rows = planned(servers, topic)
    topics.delete_before(servers, topic, 4)
    with pytest.raises(DataLoss, match=f"offsets 0 to 5 of partition {topic}-0 were asked for, but it has only 4 to 5"):
        records(RangeReading.of(given(servers, topic)), rows)
    left = records(RangeReading.of(given(servers, topic, failOnDataLoss="false")), rows)
    assert [row["offset"] for row in left] == [4, 5]


def test_damaged_records_are_told_with_their_place() -> None:
    damaged = build_batch([Record(offset, 1_000, None, b"value") for offset in range(5)])
    damaged[-3] ^= 1

    def fetch(request: Any, version: int) -> Message:
        row = m.FetchResponse.PartitionData(
            partition_index=0, high_watermark=5, last_stable_offset=5, records=bytes(damaged)
        )
        topic = m.FetchResponse.FetchableTopicResponse(topic="t", partitions=[row])
        return m.FetchResponse(responses=[topic])

    with ScriptedBroker({"t": 1}, Fetch=fetch) as broker:
        reading = RangeReading.of(given(broker.bootstrap, "t"))
        with pytest.raises(UnreadableRecords, match="partition t-0 cannot be read: the batch at offset 0 fails"):
            records(reading, [rows_of([OffsetRange("t", 0, 0, 5)])])


def test_a_task_reads_with_the_login_of_the_source() -> None:
    with Broker(security="SASL_SSL") as broker:
        settings = broker.client_settings()
        secured = {f"kafka.{name}": str(value) for name, value in settings.items() if name != "bootstrap.servers"}
        admin, producer = AdminClient(settings), Producer(settings)
        admin.create_topics([NewTopic("secured", 1)])["secured"].result(20)
        producer.produce("secured", b"value", b"key")
        assert producer.flush(20) == 0
        servers = str(settings["bootstrap.servers"])
        rows = [rows_of([OffsetRange("secured", 0, 0, 1)])]
        (record,) = records(RangeReading.of(given(servers, "secured", **secured)), rows)
        assert (record["key"], record["value"]) == (b"key", b"value")
