"""A topic as a stream: what comes, how much at once, what is new, what is gone, and a broker that restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark import planned, topics
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import BrokerProcess

KAFKA = pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.jvm])


@pytest.fixture(scope="module", params=["ottla", KAFKA])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "kafka":
        require_kafka_libs()
    with KafkaPeer(folder) if request.param == "kafka" else OttlaProcess(folder) as running:
        yield running


@pytest.fixture
def servers(cluster: BrokerProcess) -> str:
    return cluster.bootstrap


class Query:
    """A streaming query whose rows arrive in a list."""

    def __init__(self, spark: Any, checkpoint: Path, servers: str, trigger: dict[str, Any], **options: Any) -> None:
        self.batches: list[list[Any]] = []
        named = {name.replace("__", "."): str(value) for name, value in options.items()}
        frame = spark.readStream.format("ottla").option("kafka.bootstrap.servers", servers).options(**named).load()
        self.query = (
            frame.writeStream.foreachBatch(lambda batch, _: self.batches.append(batch.collect()))
            .option("checkpointLocation", str(checkpoint))
            .trigger(**trigger)
            .start()
        )

    @property
    def numbers(self) -> list[int]:
        return topics.numbers([row for batch in self.batches for row in batch])

    def until(self, holds: Callable[[], bool], timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            failure = self.query.exception()
            assert failure is None, failure
            assert time.monotonic() < deadline, (len(self.numbers), self.query.status)
            time.sleep(0.05)

    def stop(self) -> None:
        self.query.stop()

    def failure(self) -> str:
        with pytest.raises(Exception) as failed:
            self.query.awaitTermination(60)
        return str(failed.value)


@pytest.fixture
def start(spark: Any, servers: str, tmp_path: Path) -> Iterator[Callable[..., Query]]:
    """`start(subscribe=topic)`: queries of one test share a checkpoint, each goes on where the last one stopped."""
    made: list[Query] = []

    def make(trigger: dict[str, Any] | None = None, **options: Any) -> Query:
        given = {"startingOffsets": "earliest", **options}
        made.append(
            Query(spark, tmp_path / "checkpoint", servers, trigger or {"processingTime": "100 milliseconds"}, **given)
        )
        return made[-1]

    yield make
    for one in made:
        one.stop()


def finish(query: Query) -> list[int]:
    assert query.query.awaitTermination(60)
    return query.numbers


def test_what_is_written_comes_once_and_a_restart_goes_on(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers, 2)
    topics.produce(servers, topic, range(100), 2)
    query = start(subscribe=topic)
    query.until(lambda: len(query.numbers) >= 100)
    topics.produce(servers, topic, range(100, 150), 2)
    query.until(lambda: len(query.numbers) >= 150)
    query.query.processAllAvailable()  # a batch that is not committed yet would come again
    query.stop()
    assert query.numbers == list(range(150))
    topics.produce(servers, topic, range(150, 200), 2)
    assert finish(start({"availableNow": True}, subscribe=topic)) == list(range(150, 200))
    assert finish(start({"availableNow": True}, subscribe=topic)) == []


def test_a_stream_begins_at_the_end_unless_told(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(10))
    query = start(subscribe=topic, startingOffsets="latest")
    query.until(lambda: query.query.lastProgress is not None)
    topics.produce(servers, topic, range(10, 20))
    query.until(lambda: len(query.numbers) >= 10)
    assert query.numbers == list(range(10, 20))


def test_batches_are_no_larger_than_asked(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers, 3)
    topics.produce(servers, topic, range(300), 3)
    query = start({"availableNow": True}, subscribe=topic, maxOffsetsPerTrigger=120)
    assert finish(query) == list(range(300))
    assert [len(batch) for batch in query.batches] == [120, 120, 60]


def test_a_backlog_is_worked_off_in_steps_of_bytes(servers: str, start: Callable[..., Query]) -> None:
    """Many small records and then few large ones: the large ones are not taken for as small as the others."""
    topic = topics.create(servers, 2)
    topics.produce(servers, topic, range(20_000), 2)
    topics.produce(servers, topic, range(20_000, 20_200), 2, size=100_000)
    query = start({"availableNow": True}, subscribe=topic, maxBytesPerTrigger="2m")
    assert finish(query) == list(range(20_200))
    sizes = [sum(len(row.value) for row in batch) for batch in query.batches]
    assert max(sizes) <= 2 << 20
    assert 10 <= len(sizes) <= 40


def test_of_a_limit_of_bytes_and_one_of_offsets_the_smaller_counts(servers: str) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(2_000), size=1_000)
    for limits, least, most in (
        ({"maxOffsetsPerTrigger": 100}, 100, 100),
        ({"maxOffsetsPerTrigger": 1_500}, 500, 1_049),
    ):
        reader = planned.source(servers, topic, maxBytesPerTrigger="1m", **limits)
        end = reader.latestOffset(reader.initialOffset(), planned.LIMIT)
        assert least <= end[topic]["0"] <= most


def test_a_small_batch_waits_for_more(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(10))
    query = start(subscribe=topic, minOffsetsPerTrigger=50, maxTriggerDelay="4s")
    query.until(lambda: len(query.numbers) == 10)  # the first batch does not wait, as with Spark's connector
    topics.produce(servers, topic, range(10, 20))
    time.sleep(1)
    assert len(query.numbers) == 10
    topics.produce(servers, topic, range(20, 60))
    query.until(lambda: len(query.numbers) == 60)
    topics.produce(servers, topic, range(60, 61))
    query.until(lambda: len(query.numbers) == 61)


def test_new_partitions_and_topics_are_picked_up(servers: str, start: Callable[..., Query]) -> None:
    first = topics.create(servers, name="grow-a")
    topics.produce(servers, first, range(10))
    query = start(subscribePattern="grow-.*")
    query.until(lambda: len(query.numbers) == 10)
    topics.grow(servers, first, 3)
    topics.produce(servers, first, range(10, 40), 3)
    second = topics.create(servers, 2, name="grow-b")
    topics.produce(servers, second, range(40, 60), 2)
    query.until(lambda: len(query.numbers) == 60)
    assert query.numbers == list(range(60))


def test_lag_is_reported(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(10))
    query = start(subscribe=topic)
    query.until(lambda: any(one.sources[0].latestOffset for one in query.query.recentProgress))
    offsets = [one.sources[0].latestOffset for one in query.query.recentProgress]
    assert f'{{"{topic}": {{"0": 10}}}}' in [str(one) for one in offsets]


def test_deleted_records_stop_the_query_or_are_skipped(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(50))
    assert len(finish(start({"availableNow": True}, subscribe=topic))) == 50
    topics.produce(servers, topic, range(50, 100))
    topics.delete_before(servers, topic, 80)
    assert "data were lost: offsets 50 to 99" in start({"availableNow": True}, subscribe=topic).failure()
    rest = start({"availableNow": True}, subscribe=topic, failOnDataLoss="false")
    assert finish(rest) == list(range(80, 100))


def test_a_topic_made_anew_stops_the_query(servers: str, start: Callable[..., Query]) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(50))
    assert len(finish(start({"availableNow": True}, subscribe=topic))) == 50
    topics.delete(servers, topic)
    topics.create(servers, name=topic)
    topics.produce(servers, topic, range(60))
    failure = start({"availableNow": True}, subscribe=topic).failure()
    assert f"topic {topic} was deleted and made anew since it was read" in failure
    assert finish(start({"availableNow": True}, subscribe=topic, failOnDataLoss="false")) == list(range(60))


def test_a_deleted_topic_stops_the_query(servers: str, start: Callable[..., Query]) -> None:
    kept, gone = topics.create(servers), topics.create(servers)
    topics.produce(servers, kept, range(5))
    topics.produce(servers, gone, range(5, 10))
    both = f"{kept},{gone}"
    assert len(finish(start({"availableNow": True}, subscribe=both))) == 10
    topics.delete(servers, gone)
    topics.produce(servers, kept, range(10, 15))
    assert f"partition {gone}-0 does not exist any more" in start({"availableNow": True}, subscribe=both).failure()
    assert finish(start({"availableNow": True}, subscribe=both, failOnDataLoss="false")) == list(range(10, 15))


def test_a_broker_that_is_killed_is_waited_for(
    cluster: BrokerProcess, servers: str, start: Callable[..., Query]
) -> None:
    topic = topics.create(servers, 2)
    topics.produce(servers, topic, range(100), 2)
    query = start(subscribe=topic)
    query.until(lambda: len(query.numbers) == 100)
    cluster.kill()
    revival = threading.Timer(1.0, cluster.start)
    revival.start()
    revival.join()
    topics.produce(servers, topic, range(100, 200), 2)
    query.until(lambda: len(query.numbers) >= 200)
    assert query.numbers == list(range(200))


def test_a_missing_topic_is_one_sentence(servers: str, start: Callable[..., Query]) -> None:
    assert "there is no topic 'never-made' in the cluster" in start(subscribe="never-made").failure()


def test_a_broker_that_stays_away_ends_the_query_in_one_sentence_and_nothing_is_lost(
    cluster: BrokerProcess, servers: str, start: Callable[..., Query]
) -> None:
    topic = topics.create(servers)
    topics.produce(servers, topic, range(10))
    query = start(subscribe=topic, **{"kafka.default.api.timeout.ms": 2_000})
    query.until(lambda: len(query.numbers) == 10)
    query.query.processAllAvailable()
    cluster.kill()
    try:
        failure = query.failure()
    finally:
        cluster.start()
    assert f"cannot reach any broker at {servers}: is it running?" in failure
    topics.produce(servers, topic, range(10, 20))
    assert finish(start({"availableNow": True}, subscribe=topic)) == list(range(10, 20))


def test_a_broker_that_is_killed_in_the_middle_of_a_batch(spark: Any, cluster: BrokerProcess, servers: str) -> None:
    topic = topics.create(servers, 4)
    topics.produce(servers, topic, range(100_000), 4)
    small = {"kafka.max.partition.fetch.bytes": "50000", "kafka.bootstrap.servers": servers, "subscribe": topic}
    frame = spark.read.format("ottla").options(**small).load()

    def slowly(pieces: Iterator[Any]) -> Iterator[Any]:
        for piece in pieces:
            time.sleep(0.05)
            yield piece

    crash = threading.Timer(1.0, lambda: cluster.restart(kill=True))
    crash.start()
    rows = frame.mapInArrow(slowly, frame.schema).select("value").collect()
    crash.join()
    assert topics.numbers(rows) == list(range(100_000))
