"""Pipelines in your tests: a broker for the test, the Spark of all tests, and what comes out.

    def test_orders_are_counted(ottla_pipelines):
        ottla_pipelines.send("orders", [{"customer": 1, "euro": 10}, b"this is no order"])
        done = ottla_pipelines.run("sales.py")
        assert done.dead_letters == 1
        assert ottla_pipelines.rows("sales") == [{"customer": 1, "euro": 10.0}]

A run takes all that is there and ends, as `ottla pipeline run --once` does. The next run of the same test goes on where
the last one was.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka.admin import AdminClient

from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.home import Home, Status
from ottla.spark.pipeline.loading import load
from ottla.spark.pipeline.progress import BatchFigures
from ottla.spark.pipeline.runner import Runner, RunSettings
from ottla.testing.broker import Broker
from ottla.testing.records import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWER_S_MAX = 60.0
_PAUSE_S = 0.1

Payload = bytes | str | Mapping[str, Any] | None


class Pipelines:
    """`with Pipelines(spark) as pipelines:`, or the fixture `ottla_pipelines`."""

    def __init__(self, spark: SparkSession, broker: Broker | None = None) -> None:
        """`broker`: one that is running already; without it there is one for this object alone."""
        self._spark = spark
        self._is_ours = broker is None
        self.broker = broker or Broker()
        self._folder = tempfile.TemporaryDirectory(prefix="ottla-pipelines-", ignore_cleanup_errors=True)
        self._known: set[str] = set()

    def __enter__(self) -> Self:
        if self._is_ours:
            self.broker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_ours:
            self.broker.stop()
        self._folder.cleanup()

    # --- what goes in

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """`send` makes a topic of one partition if there is none, and `run` the one that the pipeline writes to."""
        self.broker.create_topic(name, partitions)

    def send(self, topic: str, values: Iterable[Payload] | Mapping[str, Payload]) -> None:
        """Values in order, or by key. A dict becomes JSON, None a record without a value."""
        self._ensure(topic)
        if isinstance(values, Mapping):
            for key, value in values.items():
                self.broker.produce(topic, value, key=key)
        else:
            self.broker.produce(topic, *values)

    # --- the pipeline

    def run(self, pipeline: Pipeline | str | Path) -> Status:
        """Process all that is there. What it says of itself: rows_in, rows_out, dead_letters, late_rows, batch ...

        A file is loaded anew for each run. Raises OttlaError, with the sentence that `ottla pipeline run` would print.
        """
        made = pipeline if isinstance(pipeline, Pipeline) else load(Path(pipeline))
        if made.to is not None:
            self._ensure(made.to)
        settings = RunSettings(
            client={"kafka.bootstrap.servers": self.broker.bootstrap_servers}, once=True, pause_s_first=_PAUSE_S
        )
        home = Home(Path(self._folder.name), made.name)
        with _sql_settings(self._spark, made.conf):
            Runner(made, settings, home, _Silent(), sessions=lambda: self._spark).run()
        return home.read()

    # --- what comes out

    def records(self, topic: str) -> list[Record]:
        """All that is committed, partition after partition."""
        return self.broker.records(topic)

    def rows(self, topic: str) -> list[Any]:
        """The values of `records`, decoded from JSON."""
        return [record.json for record in self.records(topic)]

    def _ensure(self, topic: str) -> None:
        if topic in self._known:
            return
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        if topic not in admin.list_topics(timeout=_ANSWER_S_MAX).topics:
            self.broker.create_topic(topic)
        self._known.add(topic)


@contextmanager
def _sql_settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Of a pipeline's own settings those that a session can change while it runs, such as its time zone."""
    ours = {
        name: value for name, value in conf.items() if name.startswith("spark.sql.") and spark.conf.isModifiable(name)
    }
    before = {name: spark.conf.get(name, None) for name in ours}
    for name, value in ours.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


class _Silent:
    def event(self, name: str, sentence: str, **facts: Any) -> None:
        pass

    def batch(self, status: Status, batch: BatchFigures) -> None:
        pass
