"""Several outputs of one micro-batch: each row is in those it belongs to, also when blocks of the batch are lost."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.spark.sink import streaming
from ottla.spark.sink.keeping import RowsLost, computed_once
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.reading import committed_records

ROWS = 600


class Scene:
    """Every row throws a coin, another one each time it is computed, and goes to one of two topics by it."""

    def __init__(self, spark: Any, servers: str, folder: Path) -> None:
        self.spark, self.servers, self.folder = spark, servers, folder
        self.source = topics.create(servers, 2)
        self.out = [topics.create(servers, 1), topics.create(servers, 1)]
        topics.produce(servers, self.source, range(ROWS), 2)

    def run(self, outputs: Callable[[Any], Any] | None = None) -> None:
        stream = (
            self.spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.source)
            .option("startingOffsets", "earliest")
            .load()
            .repartition(12)
            .selectExpr("key", "value", "java_method('java.lang.Math', 'random') as coin")
        )
        ottla.spark.write_stream(
            stream,
            name=self.source,
            bootstrap=self.servers,
            outputs=outputs or self.split,
            checkpoint=str(self.folder),
            trigger={"availableNow": True},
        ).awaitTermination()

    def split(self, batch: Any) -> list[Any]:
        sides = [batch.where("cast(coin as double) < 0.5"), batch.where("cast(coin as double) >= 0.5")]
        return [
            side.selectExpr("key", "value", f"'{topic}' as topic") for side, topic in zip(sides, self.out, strict=True)
        ]

    def written(self) -> Counter[bytes]:
        return Counter(value for topic in self.out for _, value in committed_records(self.servers, topic))


@pytest.fixture
def scene(spark: Any, broker: Broker, tmp_path: Path) -> Scene:
    return Scene(spark, broker.bootstrap_servers, tmp_path / "checkpoint")


class Dropping:
    """While the first jobs run that read the kept rows, all blocks of them are dropped, again and again."""

    def __init__(self, spark: Any, jobs: int) -> None:
        self._context = spark.sparkContext._jsc.sc()
        self._left = jobs
        self._spooled = streaming.spooled
        self.jobs = 0

    @contextmanager
    def spooled(self, *arguments: Any) -> Iterator[Any]:
        self.jobs += 1
        if not self._left:
            with self._spooled(*arguments) as encoded:
                yield encoded
            return
        self._left -= 1
        ended = threading.Event()
        thread = threading.Thread(target=self._drop, args=(ended,))
        thread.start()
        try:
            with self._spooled(*arguments) as encoded:
                ended.set()
                yield encoded
        finally:
            ended.set()
            thread.join()

    def _drop(self, ended: threading.Event) -> None:
        ids = [int(one) for one in re.findall(r"\d+", self._context.getPersistentRDDs().keySet().toString())]
        while not ended.is_set():
            for one in ids:
                self._context.unpersistRDD(one, True)


def expected() -> Counter[bytes]:
    return Counter(b"v%d" % number for number in range(ROWS))


def test_blocks_that_are_lost_lose_and_double_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    dropping = Dropping(scene.spark, jobs=1)
    monkeypatch.setattr(streaming, "spooled", dropping.spooled)
    scene.run()
    assert scene.written() == expected()
    assert dropping.jobs == 2, "all of the batch was computed again"


def test_with_a_cache_alone_rows_would_be_lost_and_doubled(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def cached(frame: Any) -> Iterator[Any]:
        frame.persist()
        try:
            frame.count()
            yield frame
        finally:
            frame.unpersist()

    monkeypatch.setattr(streaming, "computed_once", cached)
    monkeypatch.setattr(streaming, "spooled", Dropping(scene.spark, jobs=1).spooled)
    scene.run()
    assert scene.written() != expected()


def test_rows_that_are_lost_every_time_end_the_query_and_nothing_is_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "spooled", Dropping(scene.spark, jobs=9).spooled)
    with pytest.raises(RowsLost, match="rows of a batch that were kept for its outputs are lost"):
        scene.run()
    assert not scene.written()


def test_one_output_that_uses_the_batch_twice_sees_the_same_rows(scene: Scene) -> None:
    scene.run(lambda batch: scene.split(batch)[0].unionByName(scene.split(batch)[1]))
    assert scene.written() == expected()


def test_no_output_writes_nothing(scene: Scene) -> None:
    scene.run(lambda batch: [])
    assert not scene.written()


def test_nothing_is_kept_when_it_is_over(spark: Any) -> None:
    context = spark.sparkContext._jsc.sc()
    before = context.getPersistentRDDs().size()
    with computed_once(spark.range(10)) as kept:
        assert kept.count() == 10
        assert context.getPersistentRDDs().size() == before + 1
    assert context.getPersistentRDDs().size() == before
