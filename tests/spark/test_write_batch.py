"""`frame.write.format("ottla")`: all rows or none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from ottla.common.errors import OttlaError
from ottla.spark.sink import batch
from ottla.spark.sink.batch import BatchWriter, TaskIsDone
from ottla.spark.sink.driver_spool import driver_spool
from ottla.spark.sink.spooling import Report
from ottla.spark.spool.sending import send
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.reading import committed_records


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture(autouse=True)
def spool(spark: Any) -> Iterator[Path]:
    """The folder of the driver's spool, in which nothing may be left."""
    folder = driver_spool(spark).open_folder().path
    yield folder
    assert spooled_files(folder) == []


def spooled_files(folder: Path) -> list[str]:
    return [one.name for one in folder.rglob("*") if one.name != "lock"]


def save(frame: Any, servers: str, mode: str = "append", **options: Any) -> None:
    frame.write.format("ottla").mode(mode).option("kafka.bootstrap.servers", servers).options(**options).save()


@pytest.mark.parametrize("codec", topics.CODECS)
def test_all_columns_arrive(spark: Any, servers: str, codec: str) -> None:
    topic = topics.create(servers, 3)
    headers = (
        "array(struct('a' as key, cast('b' as binary) as value), struct('n' as key, cast(null as binary) as value))"
    )
    frame = spark.range(300, numPartitions=4).selectExpr(
        "if(id % 10 = 0, null, concat('k', id)) as key",
        "if(id % 7 = 0, null, cast(concat('v', id) as binary)) as value",
        "if(id % 3 = 0, cast(id % 2 as int), null) as partition",
        f"if(id % 5 = 0, {headers}, null) as headers",
        "timestamp_millis(1600000000000 + id) as timestamp",
    )
    save(frame, servers, topic=topic, **{"kafka.compression.type": codec})
    found = topics.consumed(servers, topic)
    assert len(found) == 300
    by_time = {row[4] - 1_600_000_000_000: row for row in found}
    for number in range(300):
        partition, _, key, value, _, _, row_headers = by_time[number]
        assert key == (None if number % 10 == 0 else b"k%d" % number)
        assert value == (None if number % 7 == 0 else b"v%d" % number)
        assert number % 3 != 0 or partition == number % 2
        assert row_headers == ((("a", b"b"), ("n", None)) if number % 5 == 0 else None)


def test_nothing_is_written_when_a_task_fails(spark: Any, servers: str) -> None:
    topic = topics.create(servers, 2)
    frame = spark.range(100, numPartitions=4).selectExpr(
        "cast(if(id = 99, raise_error('broken row'), concat('v', id)) as string) as value"
    )
    with pytest.raises(Exception, match="broken row"):
        save(frame, servers, topic=topic)
    assert committed_records(servers, topic) == []


def test_rows_of_one_write_go_to_many_topics(spark: Any, servers: str) -> None:
    names = [topics.create(servers, 2) for _ in range(3)]
    listed = ", ".join(f"'{name}'" for name in names)
    save(
        spark.range(30).selectExpr(f"element_at(array({listed}), cast(id % 3 + 1 as int)) topic", "'x' value"), servers
    )
    assert [len(committed_records(servers, name)) for name in names] == [10, 10, 10]


def test_an_empty_frame_writes_nothing(spark: Any, servers: str) -> None:
    topic = topics.create(servers)
    save(spark.range(0).selectExpr("'x' as value"), servers, topic=topic)
    assert committed_records(servers, topic) == []


@pytest.mark.parametrize(
    ("columns", "mode", "options", "words"),
    [
        (["id as value"], "append", {}, "the column 'value' is bigint"),
        (["'x' as key"], "append", {}, "a column 'value' is missing"),
        (["'x' as value"], "overwrite", {}, "topics can only be appended to"),
        (["'x' as value"], "append", {"topic": "no-such-topic"}, "there is no topic 'no-such-topic'"),
        (["'x' as value"], "append", {"kafka.compression.type": "rar"}, "there is no compression 'rar'"),
        (["'x' as value", "9 as partition"], "append", {}, "partition 9 is not one of the 1"),
    ],
)
def test_what_is_wrong_is_said(
    spark: Any, servers: str, columns: list[str], mode: str, options: dict[str, str], words: str
) -> None:
    topic = topics.create(servers)
    with pytest.raises(Exception, match=words):
        save(spark.range(3).selectExpr(*columns), servers, mode, **{"topic": topic, **options})
    assert committed_records(servers, topic) == []


def test_a_stream_writer_points_to_write_stream(spark: Any, servers: str, tmp_path: Any) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().selectExpr("'x' as value")
    with pytest.raises(Exception, match=r"ottla\.spark\.write_stream"):
        stream.writeStream.format("ottla").option("checkpointLocation", str(tmp_path)).start().awaitTermination(30)


def test_a_write_that_is_cancelled_writes_nothing_and_leaves_nothing(
    spark: Any, servers: str, spool: Path, tmp_path: Path
) -> None:
    """One task has sent its rows when the job is cancelled; the other one has not."""
    topic = topics.create(servers)
    goes_on = tmp_path / "goes on"

    def waiting(rows: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        while context is not None and context.partitionId() == 0 and not goes_on.exists():
            time.sleep(0.1)
        yield from rows

    frame = spark.range(10, numPartitions=2).selectExpr("'x' as value").mapInArrow(waiting, "value string")

    def cancel() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if any(name.startswith("1-") and not name.endswith(".part") for name in spooled_files(spool)):
                break
            time.sleep(0.1)
        spark.sparkContext.cancelAllJobs()
        goes_on.touch()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Exception, match="cancelled"):
        save(frame, servers, topic=topic)
    thread.join()
    assert committed_records(servers, topic) == []


def test_a_cluster_that_is_gone_when_the_rows_are_there_is_told_and_leaves_nothing(
    spark: Any, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_RETRY_TIMEOUT_S", 0.5)
    with Broker() as broker:
        servers = broker.bootstrap_servers
        topic = topics.create(servers)
        frame = spark.range(1).selectExpr("'x' as value")
        address = driver_spool(spark).address
        writer = BatchWriter({"kafka.bootstrap.servers": servers, "topic": topic}, frame.schema, address)
    total = send(writer._target, 0, 1, [(topic, 0, 1, b"x" * 100)])
    with pytest.raises(OttlaError, match="cannot reach any broker"):
        writer.commit([TaskIsDone(Report(0, 1, *total, None))])


@pytest.mark.parametrize(
    ("timeout_ms", "words"),
    [
        ("soon", "kafka.transaction.timeout.ms wants a whole number"),
        ("900001", "transaction.max.timeout.ms: ask for less"),
    ],
)
def test_the_time_out_of_its_transaction_is_kafkas_setting(
    spark: Any, servers: str, timeout_ms: str, words: str
) -> None:
    topic = topics.create(servers)
    with pytest.raises(Exception, match=words):
        save(
            spark.range(3).selectExpr("'x' value"), servers, topic=topic, **{"kafka.transaction.timeout.ms": timeout_ms}
        )
    assert committed_records(servers, topic) == []


def test_all_queries_and_writes_of_a_driver_share_one_spool(spark: Any) -> None:
    assert driver_spool(spark) is driver_spool(spark.newSession())
