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

from ottla.client.address import ClusterAddress
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


class Headers:
    """In the place of a plan: how many lists of headers are null, and how many entries there are."""

    def encode(self, rows: Iterator[pa.RecordBatch], task: int) -> Iterator[tuple[str, int, int, bytes]]:
        for piece in rows:
            lists = piece.column("headers")
            yield "headers", task, piece.num_rows, b"%d %d" % (lists.null_count, len(lists.flatten()))


def test_rows_without_headers_come_with_empty_lists(spark: SparkSession, tmp_path: Path) -> None:
    """Spark goes through all null lists of a piece again for each of its rows."""
    header = "array(named_struct('key', 'a', 'value', cast('b' as binary)))"
    frame = spark.range(100, numPartitions=1).selectExpr(
        "cast(id as string) as value", f"case when id % 10 = 0 then {header} end as headers"
    )
    with (
        SpoolServer(host="127.0.0.1", folder=tmp_path) as spool,
        spooled(frame, cast(EncodePlan, Headers()), spool) as encoded,
    ):
        assert [bytes(data) for _, data in encoded] == [b"0 10"]


def test_no_headers_and_empty_lists_are_the_same_bytes() -> None:
    plan = EncodePlan(ClusterAddress("127.0.0.1:1"), "topic", {"topic": 3})
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    some = [{"key": "a", "value": b"b"}]
    for without, empty in (([None] * 3, [[]] * 3), ([None, some, None], [[], some, []])):
        encoded = [list(plan.encode(iter([_rows(pa.array(lists, kind))]), task=0)) for lists in (without, empty)]
        assert encoded[0] == encoded[1]


def _rows(headers: pa.Array) -> pa.RecordBatch:
    times = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
    columns = {"key": pa.array([b"a", b"b", None]), "value": pa.array([b"1", b"2", b"3"]), "timestamp": times}
    return pa.RecordBatch.from_pydict({**columns, "headers": headers})
