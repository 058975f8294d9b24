"""A topic as a DataFrame: rows, bounds, splits, and one sentence for what is wrong."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ottla.spark
from ottla.testing import Broker
from tests.spark import topics

COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


def load(spark: Any, servers: str, **options: Any) -> Any:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", servers)
    return reader.options(**{name.replace("__", "."): str(value) for name, value in options.items()}).load()


def test_the_schema_is_that_of_sparks_connector(spark: Any, servers: str) -> None:
    topic = topics.create(servers)
    plain = load(spark, servers, subscribe=topic)
    assert plain.columns == COLUMNS
    assert plain.dtypes[5:] == [("timestamp", "timestamp"), ("timestampType", "int")]
    headers = load(spark, servers, subscribe=topic, includeHeaders="true").dtypes[-1]
    assert headers == ("headers", "array<struct<key:string,value:binary>>")
    assert plain.collect() == []


def test_rows_are_those_that_a_plain_consumer_reads(spark: Any, servers: str) -> None:
    topic = topics.create(servers, 3)
    topics.produce_everything(servers, topic, 3)
    frame = load(spark, servers, subscribe=topic, includeHeaders="true")
    assert topics.comparable(frame.collect()) == topics.consumed(servers, topic)
    dirty = load(spark, servers, subscribe=topic, includeHeaders="true", kafka__isolation__level="read_uncommitted")
    assert topics.comparable(dirty.collect()) == topics.consumed(servers, topic, "read_uncommitted")


def test_every_session_can_have_the_format(spark: Any, servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(3))
    other = spark.newSession()
    ottla.spark.register(other)
    ottla.spark.register(other)  # a second time changes nothing
    assert load(other, servers, subscribe=topic).count() == 3
    assert load(spark, servers, subscribe=topic).count() == 3


def test_a_thread_of_its_own_writes_once_it_has_registered(spark: Any, servers: str) -> None:
    topic = topics.create(servers)

    def write() -> None:
        ottla.spark.register(spark)
        frame = spark.range(3).selectExpr("cast(id as string) as value")
        frame.write.format("ottla").option("kafka.bootstrap.servers", servers).option("topic", topic).mode(
            "append"
        ).save()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(write).result()
    assert load(spark, servers, subscribe=topic).count() == 3


def test_bounds_by_offset_and_by_time(spark: Any, servers: str) -> None:
    topic = topics.create(servers, 2)
    topics.produce(servers, topic, range(100), 2)

    def read(**options: Any) -> list[int]:
        named = {
            name: json.dumps({topic: value}) if isinstance(value, dict) else value for name, value in options.items()
        }
        return topics.numbers(load(spark, servers, subscribe=topic, **named).collect())

    assert read(startingOffsets={"0": 45, "1": -2}, endingOffsets={"0": -1, "1": 3}) == [1, 3, 5, *range(90, 100, 2)]
    assert read(startingTimestamp=1_090_000) == list(range(90, 100))
    assert read(startingOffsetsByTimestamp={"0": 1_090_000, "1": 1_095_000}) == [90, 92, 94, *range(95, 100)]
    assert read(endingTimestamp=1_005_000) == list(range(5))
    assert read(endingTimestamp=9_000_000, startingOffsets={"0": 48, "1": 48}) == [96, 97, 98, 99]
    assert read(startingTimestamp=9_000_000, startingOffsetsByTimestampStrategy="latest") == []


def test_several_topics_patterns_and_single_partitions(spark: Any, servers: str) -> None:
    first, second = topics.create(servers, 2, name="many-a"), topics.create(servers, name="many-b")
    topics.produce(servers, first, range(10), 2)
    topics.produce(servers, second, range(10, 15))
    assert topics.numbers(load(spark, servers, subscribe="many-a, many-b").collect()) == list(range(15))
    assert topics.numbers(load(spark, servers, subscribePattern="many-.").collect()) == list(range(15))
    assert topics.numbers(load(spark, servers, assign='{"many-a": [1]}').collect()) == [1, 3, 5, 7, 9]
    assert load(spark, servers, subscribePattern="none-.*").collect() == []


def test_splits_follow_the_cores_and_the_options(spark: Any, servers: str) -> None:
    topic = topics.create(servers, 8)
    topics.produce(servers, topic, range(20_000), 8)
    assert load(spark, servers, subscribe=topic).rdd.getNumPartitions() == 2
    wide = load(spark, servers, subscribe=topic, minPartitions=12)
    assert wide.rdd.getNumPartitions() == 12
    assert topics.numbers(wide.collect()) == list(range(20_000))
    assert load(spark, servers, subscribe=topic, maxRecordsPerPartition=1_000).rdd.getNumPartitions() == 20


def test_a_limit_leaves_the_connection_usable(spark: Any, servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(30_000))
    for _ in range(3):
        assert len(load(spark, servers, subscribe=topic).limit(5).collect()) == 5


def test_deleted_records_fail_or_warn(spark: Any, servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(100))
    topics.delete_before(servers, topic, 40)
    assert topics.numbers(load(spark, servers, subscribe=topic).collect()) == list(range(40, 100))
    old = json.dumps({topic: {"0": 10}})
    with pytest.raises(Exception, match=r"data were lost: offsets 10 to 99 of partition .* it has only 40 to 99 now"):
        load(spark, servers, subscribe=topic, startingOffsets=old).collect()
    rest = load(spark, servers, subscribe=topic, startingOffsets=old, failOnDataLoss="false").collect()
    assert topics.numbers(rest) == list(range(40, 100))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "absent"}, "there is no topic 'absent' in the cluster at"),
        ({"assign": '{"present": [7]}'}, "topic 'present' has no partition 7 in the cluster at"),
        ({"subscribe": "present", "startingOffsets": '{"present": {"0": 1}}'}, "but not present-1"),
        ({"subscribe": "present", "startingOffsets": '{"gone": {"0": 1}}'}, "but not present-0"),
        ({"subscribe": "present", "startingTimestamp": "99999999999999"}, "has no record as late as 99999999999999"),
        (
            {"subscribe": "present", "startingOffsets": '{"present": {"0": 5, "1": 0}}'},
            "ends at 0, before the offset 5",
        ),
        ({"subscribe": "present", "strtingOffsets": "latest"}, "did you mean startingOffsets?"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(spark: Any, servers: str, options: dict[str, str], words: str) -> None:
    if not topics.exists(servers, "present"):
        topics.create(servers, 2, name="present")
    with pytest.raises(Exception) as failed:
        load(spark, servers, **options).collect()
    assert words in str(failed.value)


def test_a_broker_that_is_down_is_one_sentence(spark: Any) -> None:
    with pytest.raises(Exception, match=r"cannot reach any broker at 127\.0\.0\.1:1"):
        load(spark, "127.0.0.1:1", subscribe="t", kafka__default__api__timeout__ms=200).collect()
