"""Records that are read, processed and encoded in one task of Python: what is written is what the way through Spark's
rows writes, and what is counted is counted once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from ottla.client.address import ClusterAddress
from ottla.client.fetching import DataLoss, OffsetRange, UnreadableRecords
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.progress import figures
from ottla.spark.pipeline.verdicts import Retry, judge
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.in_tasks import RECORDS_IN, Counts, PickledWork, counted, run_work
from ottla.spark.sink.spooling import Report, encoded_by
from ottla.spark.sink.streaming import WriteQuery, write_stream
from ottla.spark.source.ranges import RangeReading, rows_of
from ottla.spark.spool.server import SpoolServer
from ottla.testing import Broker
from tests.spark import topics
from tests.support.kafka_jars import REPO_ROOT

COPIED = ["key", "value", "timestamp", "headers"]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


class Copy:
    """Writes what it reads."""

    def __init__(self, reading: RangeReading) -> None:
        self._reading = reading

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        for batch in self._reading.records(rows):
            counts.update({RECORDS_IN: batch.num_rows, "rows": batch.num_rows})
            yield batch.select(COPIED)


class Fails(Copy):
    def __init__(self, reading: RangeReading, error: Exception) -> None:
        super().__init__(reading)
        self._error = error

    def __call__(self, rows: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        yield from super().__call__(rows, counts)
        raise self._error


def options(servers: str, topic: str) -> dict[str, str]:
    level = {"kafka.isolation.level": "read_committed"}
    return {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest", **level}


def written(spark: Any, servers: str, source: str, target: str, folder: Path, *, in_tasks: bool) -> WriteQuery:
    """A copy, either way, in batches of 300 records."""
    given = {**options(servers, source), "includeHeaders": "true"}
    frame = spark.readStream.format("ottla").options(**given, maxOffsetsPerTrigger="300")
    query = write_stream(
        frame.option("rangesOnly", "true").load() if in_tasks else frame.load().select(*COPIED),
        name=target,
        bootstrap=servers,
        topic=target,
        checkpoint=str(folder / target),
        trigger={"availableNow": True},
        work=Copy(RangeReading.of(given)) if in_tasks else None,
    )
    query.awaitTermination()
    return query


def test_results_are_those_of_the_way_through_rows(spark: Any, servers: str, tmp_path: Path) -> None:
    """Of all that a topic can hold: codecs, headers, nulls, times, aborted transactions."""
    source, by_rows, by_tasks = topics.create(servers, 3), topics.create(servers, 2), topics.create(servers, 2)
    topics.produce_everything(servers, source, 3)
    there = topics.consumed(servers, source)
    rows, tasks = (
        written(spark, servers, source, target, tmp_path, in_tasks=target == by_tasks) for target in (by_rows, by_tasks)
    )
    found = [without_places(topics.consumed(servers, target)) for target in (by_rows, by_tasks)]
    assert found[0] == found[1]
    assert sorted((row[1:] for row in found[0]), key=repr) == sorted((row[2:] for row in there), key=repr)
    # Records, though Spark has seen ranges; and as many batches.
    assert [sum(each.numInputRows for each in query.recentProgress) for query in (rows, tasks)] == [len(there)] * 2
    assert end_of(rows) == end_of(tasks)
    assert sum(figures(json.loads(each.json)).rows_out for each in tasks.recentProgress) == len(there)


def without_places(rows: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Where a record without a key goes depends on which task it is read by."""
    return sorted(
        ((partition if key is not None else None, key, *others) for partition, _, key, *others in rows), key=repr
    )


def end_of(query: WriteQuery) -> Any:
    return query.recentProgress[-1].sources[0].endOffset


def test_a_batch_that_is_run_again_writes_what_it_would_have_written(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver fails before the transaction, and there are more records when it starts again."""
    from ottla.spark.sink.publishing import Publisher

    source, target = topics.create(servers, 2), topics.create(servers, 2)
    topics.produce(servers, source, range(50), 2)
    publish, lost = Publisher.publish, []

    def lose(self: Any, marker: Any, batches: Any) -> None:
        lost.append(marker)
        raise OttlaError("the driver died here.")

    monkeypatch.setattr(Publisher, "publish", lose)
    with pytest.raises(OttlaError, match="died here"):
        written(spark, servers, source, target, tmp_path, in_tasks=True)
    published: list[Any] = []

    def note(self: Any, marker: Any, batches: Any) -> None:
        published.append(marker)
        publish(self, marker, batches)

    monkeypatch.setattr(Publisher, "publish", note)
    topics.produce(servers, source, range(50, 90), 2)
    query = written(spark, servers, source, target, tmp_path, in_tasks=True)
    assert published[0] == lost[0]
    assert [each.numInputRows for each in query.recentProgress if each.numInputRows] == [50, 40]
    assert sorted(int(row[3][1:]) for row in topics.consumed(servers, target)) == list(range(90))


@pytest.mark.parametrize(
    "error",
    [
        DataLoss("data were lost: all of them."),
        UnreadableRecords("partition t-0 cannot be read: the batch at offset 0 fails its checksum."),
        ValueError("no number"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_work_raises_arrives_with_its_type(spark: Any, servers: str, tmp_path: Path, error: Exception) -> None:
    """As from any task of Spark's: a supervisor decides by it whether to go on."""
    source, target = topics.create(servers), topics.create(servers)
    topics.produce(servers, source, range(3))
    given = options(servers, source)
    query = write_stream(
        spark.readStream.format("ottla").options(**given, rangesOnly="true").load(),
        name=target,
        bootstrap=servers,
        topic=target,
        checkpoint=str(tmp_path / target),
        trigger={"availableNow": True},
        work=Fails(RangeReading.of({**given, "includeHeaders": "true"}), error),
    )
    with pytest.raises(Exception, match=type(error).__name__) as raised:
        query.awaitTermination()
    verdict = judge(raised.value)
    assert verdict.retry is Retry.NEVER
    assert str(error).rstrip(".") in verdict.sentence
    assert topics.consumed(servers, target) == set()


def test_rows_are_made_by_one_of_both(spark: Any) -> None:
    frame = spark.readStream.format("rate").load()
    work = RangeReading.of({"subscribe": "t", "kafka.bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(OttlaError, match="by `work` or by `outputs`, not by both"):
        write_stream(
            frame, name="n", bootstrap="127.0.0.1:1", checkpoint="/c", outputs=lambda rows: rows, work=Copy(work)
        )


@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_tasks_that_are_tried_again_write_and_count_once(servers: str, tmp_path: Path) -> None:
    source, target = topics.create(servers, 2), topics.create(servers, 2)
    topics.produce(servers, source, range(40), 2)
    search_path = [str(REPO_ROOT / "src"), str(REPO_ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.retried_tasks", servers, source, target, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search_path))},
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    tries = [file.read_text() for file in tmp_path.glob("begun-*")]
    assert tries and set(tries) == {"xx"}
    assert json.loads(done.stdout.splitlines()[-1]) == [[40, {"ottla_out": {RECORDS_IN: 40, "rows": 40}}]]
    assert sorted(int(row[3][1:]) for row in topics.consumed(servers, target)) == list(range(40))


# --- without Spark: attempts of tasks as they are run on an executor


@pytest.fixture
def attempt_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Which task and attempt this process is."""
    import pyspark

    def become(task: int, attempt: int) -> None:
        context = SimpleNamespace(partitionId=lambda: task, taskAttemptId=lambda: attempt)
        monkeypatch.setattr(pyspark.TaskContext, "get", lambda: context)

    return become


PLAN = EncodePlan(ClusterAddress("127.0.0.1:1"), "out", {"out": 1})


def rows(*values: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})


def test_only_attempts_whose_reports_are_accepted_count(attempt_at: Any, tmp_path: Path) -> None:
    def work(given: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        for batch in given:
            counts["rows"] += batch.num_rows
            yield batch

    with SpoolServer(host="127.0.0.1", folder=tmp_path) as spool:
        batch = spool.begin()
        reports = {}
        for task, attempt in ((0, 10), (1, 11), (1, 12)):
            attempt_at(task, attempt)
            (done,) = run_work(work, PLAN, spool.target(batch), iter([rows(b"%d" % attempt) for _ in range(2)]))
            reports[attempt] = done.to_pylist()[0]
        accepted = [reports[10], reports[12]]
        counts = Counts()
        for each in accepted:
            counts.update(dict(each.pop("counts")))
        found = [bytes(data) for _, data in encoded_by(batch, [Report(**each) for each in accepted])]
        assert len(found) == 2 and b"10" in found[0] and b"12" in found[1]
        assert counts == {"rows": 4}
        batch.close()


def test_an_attempt_that_fails_leaves_no_file_and_no_report(attempt_at: Any, tmp_path: Path) -> None:
    def work(given: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        yield from given
        raise UnreadableRecords("no use.")

    attempt_at(0, 1)
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as spool:
        batch = spool.begin()
        with pytest.raises(UnreadableRecords, match="no use"):
            list(run_work(work, PLAN, spool.target(batch), iter([rows(b"a")])))
        assert [*batch.path.iterdir()] == []
        batch.close()


def test_what_is_wrong_with_a_row_is_in_the_report(attempt_at: Any, tmp_path: Path) -> None:
    """A mistake in the data is a sentence for the user, as on the way through Spark's rows."""

    def work(given: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        for batch in given:
            yield batch.append_column("partition", pa.array([7], pa.int32()))

    attempt_at(0, 1)
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as spool:
        batch = spool.begin()
        (done,) = run_work(work, PLAN, spool.target(batch), iter([rows(b"a")]))
        report = done.to_pylist()[0]
        assert report["problem"].startswith("a row cannot be written: ")
        assert report["frames"] == 0
        batch.close()


def test_a_task_without_rows_sends_nothing(attempt_at: Any, servers: str, tmp_path: Path) -> None:
    attempt_at(0, 1)
    reading = RangeReading.of({**options(servers, "nowhere"), "includeHeaders": "true"})
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as spool:
        batch = spool.begin()
        (done,) = run_work(Copy(reading), PLAN, spool.target(batch), iter([rows_of([])]))
        assert done.to_pylist()[0]["frames"] == 0
        assert [*batch.path.iterdir()] == []
        batch.close()


def test_work_is_pickled_once_and_made_anew_for_each_task() -> None:
    """What one attempt leaves in the objects of a program is not seen by the next."""
    seen: list[int] = []

    def work(given: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        seen.append(1)
        counts["seen"] = len(seen)
        return iter([])

    pickled = PickledWork.of(work)
    for _ in range(2):
        counts = Counts()
        assert list(pickled(iter([]), counts)) == []
        assert counts["seen"] == 1


def test_a_program_that_cannot_be_sent_is_refused_with_a_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    lock = threading.Lock()

    def work(given: Iterator[pa.RecordBatch], counts: Counts) -> Iterator[pa.RecordBatch]:
        with lock:
            yield from given

    with pytest.raises(OttlaError, match=r"cannot be sent .*: cannot pickle '_thread\.lock' object") as raised:
        PickledWork.of(work)
    assert judge(raised.value).retry is Retry.NEVER
    assert capfd.readouterr() == ("", "")


# --- what Spark's progress says then

PROGRESS = {
    "batchId": 3,
    "numInputRows": 2,
    "inputRowsPerSecond": 4.0,
    "processedRowsPerSecond": "NaN",
    "durationMs": {"addBatch": 5},
    "sources": [{"numInputRows": 2, "inputRowsPerSecond": 4.0, "endOffset": {"a": {"0": 1000}}}],
}


def test_records_are_told_where_spark_has_counted_ranges() -> None:
    told = counted(PROGRESS, Counts({RECORDS_IN: 1000, "rows": 900, "dead_letters": 30, "late": 2, "dropped": 5}))
    assert (told["numInputRows"], told["inputRowsPerSecond"], told["processedRowsPerSecond"]) == (1000, 2000.0, "NaN")
    assert told["sources"] == [{"numInputRows": 1000, "inputRowsPerSecond": 2000.0, "endOffset": {"a": {"0": 1000}}}]
    found = figures(told)
    assert (found.rows_in, found.rows_out, found.dead_letters, found.late_rows, found.dropped) == (1000, 870, 30, 2, 5)
    assert found.input_rows_per_s == 2000.0


def test_ranges_without_records_are_no_rows() -> None:
    """As those of transactions that were aborted."""
    assert counted(PROGRESS, Counts({RECORDS_IN: 0}))["numInputRows"] == 0


def test_records_that_spark_has_seen_are_not_counted_again() -> None:
    told = counted(PROGRESS, Counts({"rows": 1}))
    assert told["numInputRows"] == 2
    assert told["observedMetrics"] == {"ottla_out": {"rows": 1}}


def test_ranges_are_small_whatever_they_hold() -> None:
    ranges = [OffsetRange("topic", number, 0, 10**12) for number in range(100)]
    assert rows_of(ranges).nbytes < 10_000
