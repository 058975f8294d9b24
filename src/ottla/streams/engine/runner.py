"""An application under the runner of pipelines: the same life, restarts, live line and status; another query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.home import Home
from ottla.spark.pipeline.reporting import Reporter
from ottla.spark.pipeline.runner import Runner, RunSettings, Sessions
from ottla.spark.requirements import refuse_connect_settings
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.engine.preparing import create_topics, written_topics
from ottla.streams.program import Application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.sink.streaming import WriteQuery


class ApplicationRunner(Runner):
    what = "application"

    def __init__(
        self,
        application: Application,
        settings: RunSettings,
        home: Home,
        report: Reporter,
        *,
        reload: Callable[[], Application] | None = None,
        sessions: Sessions | None = None,
        creates_topics: bool = False,
    ) -> None:
        """`creates_topics`: those that it reads and writes and that are not there, with the cluster's defaults."""
        self._creates_topics = creates_topics
        self._application = application
        again = None if reload is None else lambda: self._reloaded(reload())
        super().__init__(_in_the_runner(application), settings, home, report, reload=again, sessions=sessions)

    def _reloaded(self, application: Application) -> Pipeline:
        self._application = application
        return _in_the_runner(application)

    def _streams(self) -> StreamsApplication:
        application, settings = self._application, self._settings
        return StreamsApplication(
            application.topology,
            application_id=application.id,
            bootstrap=settings.bootstrap,
            kafka={name.removeprefix("kafka."): value for name, value in settings.client.items()},
            handling=application.handling,
            processing_guarantee=application.processing_guarantee,
            lineage=application.lineage,
        )

    def _check_before_spark(self) -> None:
        refuse_connect_settings(self._settings.master, {**self._application.conf, **self._settings.conf})
        if self._creates_topics:
            create_topics(self._application.topology, self._address)
        self._streams().prepare()

    def _attempt(self) -> None:
        """With `--once` until nothing comes any more: records go through topics of the application, hop by hop."""
        while True:
            before = self._status.rows_in
            super()._attempt()
            if not self._settings.once or self._stop.is_set() or self._status.rows_in == before:
                return

    def _start(self, spark: SparkSession) -> WriteQuery:
        self._status = replace(self._status, topics=written_topics(self._application.topology))
        options: dict[str, Any] = dict(self._application.options)
        return self._streams().start(spark, checkpoint=self._checkpoint, trigger=self._trigger(), **options)

    def reset(self) -> None:
        """Its state too: the next run begins with nothing."""
        super().reset()
        self._streams().reset()


def _in_the_runner(application: Application) -> Pipeline:
    """What a runner wants to know of it: what it is called, how often it runs, and on which Spark."""

    def build(topics: Any) -> Any:
        raise AssertionError("an application starts its query itself")

    return Pipeline(application.id, build, every=application.every, conf=application.conf)
