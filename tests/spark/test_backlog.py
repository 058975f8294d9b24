"""A topic with a backlog, every setting at its default: it is copied in steps that commit, in bounded memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import sha512
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.pipeline import pipeline
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.backlog import RECORD_BYTES, THROUGH_ROWS, CopyRun, Peaks, Tallies, Watched, committed, fill, tally
from tests.spark.pipeline.conftest import Running
from tests.support.brokers import OttlaProcess

PROCESSES = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]
MB, GB = 1 << 20, 1 << 30
PARTITIONS = 4
# The same for any backlog: a JVM of Spark's default 1 GB of heap, and what the processes need of a batch.
MOST = Peaks(python_mb=300, jvm_mb=2000, workers_mb=2500, spool_mb=600)


def prepare(servers: str, size: int) -> Tallies:
    topics.create(servers, PARTITIONS, name="in")
    topics.create(servers, PARTITIONS, name="out")
    return fill(servers, "in", size, PARTITIONS)


def finish(run: CopyRun) -> list[dict[str, object]]:
    with run:
        batches = list(run.batches())
        said = run.close()
    assert run.process.returncode == 0, said
    assert run.events[-1]["event"] == "finished"
    print(run.peaks, len(batches), "batches")
    for name, most in vars(MOST).items():
        assert getattr(run.peaks, name) <= most, run.peaks
    return batches


def test_a_small_backlog_is_copied_once_in_steps_of_the_size_that_is_asked_for(spark: Any, tmp_path: Path) -> None:
    @pipeline(name="copy", to="out")
    def copied(topics: Any) -> Any:
        return topics.stream("in", maxBytesPerTrigger="4m").select("key", "value")

    with Broker() as broker:
        sent = prepare(broker.bootstrap_servers, 32 * MB)
        with Running(spark, copied, broker.bootstrap_servers, tmp_path, once=True) as run:
            run.wait()
        assert run.error is None
        rows = [one.rows_in for one in run.heard.batches]
        assert len(rows) >= 6
        assert max(rows) * RECORD_BYTES <= 6 * MB
        assert tally(broker.bootstrap_servers, "out", PARTITIONS) == sent


@pytest.mark.parametrize(
    "size_gb, more",
    [
        pytest.param(2, "", marks=PROCESSES, id="2"),
        pytest.param(2, THROUGH_ROWS, marks=PROCESSES, id="2 through rows"),
        pytest.param(10, "", marks=PROCESSES, id="10"),
    ],
)
def test_a_backlog_is_copied_once_in_bounded_memory(tmp_path: Path, size_gb: int, more: str) -> None:
    with OttlaProcess(tmp_path / "broker") as broker:
        sent = prepare(broker.bootstrap, size_gb * GB)
        batches = finish(CopyRun(broker.bootstrap, tmp_path, more=more))
        assert len(batches) >= size_gb * 3, "it is worked off in steps"
        lags = [int(str(one["lag"])) for one in batches]
        assert lags == sorted(lags, reverse=True), "every step is progress"
        assert lags[-1] == 0
        assert tally(broker.bootstrap, "out", PARTITIONS) == sent
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("kills", [pytest.param(2, marks=PROCESSES)])
def test_a_driver_that_is_killed_in_the_middle_goes_on_where_it_was(tmp_path: Path, kills: int) -> None:
    with OttlaProcess(tmp_path / "broker") as broker:
        sent = prepare(broker.bootstrap, 2 * GB)
        for _ in range(kills):
            with CopyRun(broker.bootstrap, tmp_path) as killed:
                next(killed.batches())
                next(killed.batches())
                killed.kill()
        left = finish(CopyRun(broker.bootstrap, tmp_path))
        assert len(left) < 2 * 4, "it did not begin anew"
        assert tally(broker.bootstrap, "out", PARTITIONS) == sent
        assert list((tmp_path / "spool").iterdir()) == [], "what the killed ones spooled is gone"
    shutil.rmtree(tmp_path)


WRITE = """
import sys, ottla.spark

servers, spool, rows = sys.argv[1:]
conf = {"spark.ui.enabled": False, "spark.driver.memory": "512m", "spark.ottla.spool.dir": spool}
spark = ottla.spark.session(app="write", master="local[2]", **conf)
noise = "concat_ws('', transform(sequence(1, 16), n -> sha2(concat(id, ' ', n), 512)))"
frame = spark.range(int(rows), numPartitions=8).selectExpr("cast(id as string) as key", f"{noise} as value")
frame.write.format("ottla").mode("append").option("kafka.bootstrap.servers", servers).option("topic", "out").save()
"""


@pytest.mark.parametrize("rows", [pytest.param(600_000, marks=PROCESSES)])
def test_a_gigabyte_is_written_at_once_by_a_small_driver(tmp_path: Path, rows: int) -> None:
    with OttlaProcess(tmp_path / "broker") as broker:
        topics.create(broker.bootstrap, PARTITIONS, name="out")
        command = [sys.executable, "-c", WRITE, broker.bootstrap, str(tmp_path / "spool"), str(rows)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        with Watched(process, tmp_path / "spool") as run:
            said = run.close()
        print(run.peaks)
        assert process.returncode == 0, said
        assert run.peaks.spool_mb > 1024, "it is as large as it says"
        assert run.peaks.jvm_mb < 1200
        assert run.peaks.python_mb < MOST.python_mb
        seen = bytearray(rows)
        for message in committed(broker.bootstrap, "out", PARTITIONS):
            number = int(message.key())
            assert message.value() == b"".join(
                sha512(b"%d %d" % (number, n)).hexdigest().encode() for n in range(1, 17)
            )
            seen[number] += 1
        assert seen == b"\x01" * rows
        assert list((tmp_path / "spool").iterdir()) == []
    shutil.rmtree(tmp_path)
