"""What executors encode is on the driver, wherever they are; rows come to them in pieces that stay in a processor's
cache, and Spark's settings stay the user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.spooling import spooled
from ottla.spark.spool import server
from ottla.spark.spool.sending import SpoolTarget
from ottla.spark.spool.server import SpoolServer

SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
MB = 1024 * 1024


class Sizes:
    """In the place of a plan: a batch for each piece, which tells its size."""

    def encode(self, rows: Iterator[pa.RecordBatch], task: int) -> Iterator[tuple[str, int, int, bytes]]:
        for piece in rows:
            yield "sizes", task, piece.num_rows, str(piece.nbytes).encode()


def sizes(spark: SparkSession, folder: Path, value: str, rows: int) -> list[int]:
    frame = spark.range(rows, numPartitions=1).select(expr(value).alias("value"))
    with (
        SpoolServer(host="127.0.0.1", folder=folder) as spool,
        spooled(frame, cast(EncodePlan, Sizes()), spool) as encoded,
    ):
        return [int(data) for _, data in encoded]


def test_executors_that_do_not_see_the_drivers_disk_send(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    here = sizes(spark, tmp_path, "repeat('x', 20000)", 1000)
    connections = []
    copy = server._copy
    monkeypatch.setattr(server, "_copy", lambda *all: (connections.append(all), copy(*all)))
    monkeypatch.setattr(
        SpoolServer, "target", lambda spool, batch: SpoolTarget(spool.address, f"/not/on/this/machine/{batch.id}")
    )
    assert sizes(spark, tmp_path, "repeat('x', 20000)", 1000) == here
    assert len(connections) == 1


def test_large_rows_come_in_small_pieces(spark: SparkSession, tmp_path: Path) -> None:
    found = sizes(spark, tmp_path, "repeat('x', 20000)", 1000)
    assert sum(found) >= 20_000 * 1000
    assert max(found) < 3 * MB
    assert spark.conf.get(SETTING, None) is None


def test_small_rows_come_as_many_as_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    assert len(sizes(spark, tmp_path, "'x'", 20_000)) == 2


def test_what_the_user_has_set_is_kept(spark: SparkSession, tmp_path: Path, request: Any) -> None:
    request.addfinalizer(lambda: spark.conf.unset(SETTING))
    spark.conf.set(SETTING, "8m")
    found = sizes(spark, tmp_path, "repeat('x', 20000)", 1000)
    assert max(found) > 4 * MB
    assert spark.conf.get(SETTING) == "8m"


def test_it_is_the_users_again_after_a_failure(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no such thing"):
        sizes(spark, tmp_path, "raise_error('no such thing')", 10)
    assert spark.conf.get(SETTING, None) is None
