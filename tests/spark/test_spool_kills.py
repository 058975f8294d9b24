"""A large batch on its way to the driver: executors die while they send it, and the driver's disk fills up."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.common.errors import OttlaError
from ottla.spark.sink import streaming
from ottla.spark.spool.server import SpoolServer
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.backlog import THROUGH_ROWS, CopyRun, fill, tally
from tests.spark.reading import committed_records
from tests.support.brokers import OttlaProcess
from tests.support.small_disk import small_tmpfs
from tests.support.spark_cluster import SparkCluster

MB = 1 << 20
KILLS = 6


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
@pytest.mark.parametrize("more", ["", THROUGH_ROWS], ids=["in tasks", "through rows"])
def test_executors_that_die_while_they_send_lose_and_double_nothing(tmp_path: Path, more: str) -> None:
    conf = (
        "spark.executor.memory=600m", "spark.executor.cores=1", "spark.driver.host=127.0.0.1",
        # Executors are killed here all the time: no machine is to be given up for it.
        "spark.task.maxFailures=20", "spark.deploy.maxExecutorRetries=-1",
    )  # fmt: skip
    with OttlaProcess(tmp_path / "broker") as broker, SparkCluster(tmp_path / "cluster") as cluster:
        servers = broker.bootstrap
        for name in ("in", "out"):
            topics.create(servers, 2, name=name)
        sent = fill(servers, "in", 800 * MB, 2)
        environment = {"PYSPARK_PYTHON": str(cluster.python)}
        with CopyRun(servers, tmp_path, master=cluster.master, conf=conf, environment=environment, more=more) as run:
            lost = threading.Thread(target=kill_senders, args=(run, cluster))
            lost.start()
            batches = list(run.batches())
            said = run.close()
            lost.join()
        assert run.process.returncode == 0, said
        assert run.kills == KILLS
        assert len(batches) >= 3
        assert tally(servers, "out", 2) == sent


def kill_senders(run: CopyRun, cluster: SparkCluster) -> None:
    """Each time when attempts have sent some megabytes of their batch, and are not done."""
    chance = random.Random(5)
    while run.kills < KILLS and run.process.poll() is None:
        sending = [size for size in run.attempts().values() if size > chance.randrange(1, 20) * MB]
        executors = cluster.executors()
        if sending and executors:
            os.kill(chance.choice(executors), signal.SIGKILL)
            run.kills += 1
            time.sleep(chance.uniform(1, 6))
        time.sleep(0.01)


def test_a_full_disk_of_the_driver_ends_the_query_with_a_sentence_and_nothing_is_written(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = broker.bootstrap_servers
    source, target = topics.create(servers, 2), topics.create(servers, 1)
    sent = fill(servers, source, 12 * MB, 2)

    def copy() -> None:
        stream = (
            spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
        )
        ottla.spark.write_stream(
            stream.select("key", "value"),
            name=source,
            bootstrap=servers,
            topic=target,
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        ).awaitTermination()

    with small_tmpfs(tmp_path / "small", "4m") as folder, SpoolServer(host="127.0.0.1", folder=folder) as small:
        monkeypatch.setattr(streaming, "driver_spool", lambda spark: small)
        with pytest.raises(OttlaError, match=r"cannot keep the batch in .*small.*: No space left on device; make room"):
            copy()
        assert committed_records(servers, target) == []
        assert [one.name for one in folder.rglob("*") if one.is_file()] == ["lock"]
    monkeypatch.undo()
    copy()
    assert tally(servers, target, 1) == sent
