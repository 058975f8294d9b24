"""Runs a pipeline until it is asked to stop: starts its query, follows it, starts it again after what may pass.

One attempt is: a session if there is none, the pipeline's function, the query, its batches until it ends. What ended it
is judged by `failures`. Nothing is lost or written twice by ending at any moment, as that is the sink's promise; all
that is at stake here is when to go on and what to say.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.kernel.loading import slow_notice
from ottla.spark.pipeline import home as states
from ottla.spark.pipeline.cluster_checks import ensure_dead_letter_topic, refuse_foreign_marker, require_topics
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.home import Home, Status
from ottla.spark.pipeline.progress import BatchFigures, figures
from ottla.spark.pipeline.reporting import Reporter
from ottla.spark.pipeline.spark_process import close_session, open_session
from ottla.spark.pipeline.verdicts import Retry, Verdict, judge
from ottla.spark.requirements import refuse_connect_settings
from ottla.spark.sink.checkpoint import Checkpoint, local_path, query_of, remove_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.tables.collection import Tables
    from ottla.spark.sink.streaming import WriteQuery

POLL_S = 0.25
PAUSE_S_MAX = 60.0
# Failures in a row without a batch between them, where nobody knows whether they pass.
UNKNOWN_FAILURES_MAX = 3
ONCE_FAILURES_MAX = 5


@dataclass(frozen=True)
class RunSettings:
    # Options `kafka.*`, bootstrap servers among them, and maybe passwords.
    client: dict[str, str] = field(repr=False)
    master: str = "local[*]"
    # All that is there now, then stop.
    once: bool = False
    # Where the checkpoint is, if not in the pipeline's folder; executors on other machines need a shared place.
    checkpoint: str | None = None
    file: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    pause_s_first: float = 1.0

    @property
    def bootstrap(self) -> str:
        return self.client["kafka.bootstrap.servers"]


Sessions = Callable[[], "SparkSession"]


class Runner:
    # What it calls that which it runs.
    what = "pipeline"

    def __init__(
        self,
        pipeline: Pipeline,
        settings: RunSettings,
        home: Home,
        report: Reporter,
        *,
        reload: Callable[[], Pipeline] | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        """`reload` gives the pipeline anew, for the next JVM: what it made in the last one (UDFs) is of no use there.
        `sessions`: where a session comes from, if not from here."""
        self._address = parse_settings(settings.client).address
        self._pipeline = pipeline
        self._reload = reload
        self._settings = settings
        self._home = home
        self._report = report
        self._sessions = sessions
        self._spark: SparkSession | None = None
        self._stop = threading.Event()
        self._has_checked = False
        self._tables: Tables | None = None
        self._seen_batch = -1
        self._failures = 0
        self._status = Status(
            pipeline.name,
            file=settings.file,
            master=settings.master,
            bootstrap=settings.bootstrap,
            checkpoint=self._checkpoint,
        )

    def request_stop(self) -> None:
        """From a signal handler or another thread: stop when the batch that runs is written."""
        self._stop.set()

    def run(self) -> None:
        """Until it is done or asked to stop. Raises OttlaError when there is no use in going on."""
        with self._home.locked():
            self._status = replace(self._status, pid=os.getpid(), started=time.time())
            try:
                self._say(
                    states.STARTING, "starting", f"{self._pipeline.name}: starting on {self._settings.master} ..."
                )
                self._run_attempts()
            except OttlaError as error:
                self._say(states.FAILED, "failed", f"{self._pipeline.name}: failed.", problem=str(error))
                raise
            except BaseException:
                self._say(states.STOPPED, "stopped", f"{self._pipeline.name}: stopped at once.")
                raise
            finally:
                if self._spark is not None and self._sessions is None:
                    close_session(self._spark)

    def reset(self) -> None:
        """Let the next run start over. A runner elsewhere is shut out, one on this machine refuses."""
        from ottla.spark.sink.progress import forget, published

        name, servers, client = self._pipeline.name, self._settings.bootstrap, self._settings.client
        with self._home.locked():
            # A cluster that does not answer is told of while there is still a checkpoint.
            published(name=name, bootstrap=servers, kafka=client)
            # In this order: a checkpoint that is gone while the marker is there is refused, the other way round is not.
            self._remove_checkpoint()
            forget(name=name, bootstrap=servers, kafka=client)

    def _remove_checkpoint(self) -> None:
        if (folder := local_path(self._checkpoint)) is not None:
            remove_folder(folder)
            return
        try:
            Checkpoint(self._session(), self._checkpoint).remove_all()
        except Exception as error:
            raise OttlaError(f"the checkpoint {self._checkpoint} is still there: {judge(error).sentence}") from None

    @property
    def _checkpoint(self) -> str:
        return self._settings.checkpoint or self._home.checkpoint_url

    # --- attempts

    def _check_before_spark(self) -> None:
        """Mistakes that the cluster knows of are told before Spark starts; a cluster that is down is waited for."""
        refuse_connect_settings(self._settings.master, {**self._pipeline.conf, **self._settings.conf})
        require_topics(self._address, [self._pipeline.to] if self._pipeline.to else [])
        if (folder := local_path(self._checkpoint)) is not None:
            refuse_foreign_marker(self._address, self._pipeline.name, self._checkpoint, query_of(folder))

    def _check_checkpoint(self, spark: SparkSession) -> None:
        """Where it is, is known to Spark alone if its location does not say it."""
        if local_path(self._checkpoint) is not None:
            return
        place = Checkpoint(spark, self._checkpoint)
        self._status = replace(self._status, checkpoint=place.qualified)
        refuse_foreign_marker(self._address, self._pipeline.name, self._checkpoint, place.last_query())

    def _run_attempts(self) -> None:
        name = self._pipeline.name
        while True:
            try:
                self._attempt()
                how = "after a whole batch"
                break
            except Exception as error:
                how = "while it was not running"
                if not self._stop.is_set():
                    self._wait_or_raise(judge(error))
                if self._stop.is_set():
                    break
        if self._settings.once and not self._stop.is_set():
            self._say(states.FINISHED, "finished", f"{name}: done, {self._totals()}.")
        else:
            self._say(states.STOPPED, "stopped", f"{name}: stopped {how}, {self._totals()}.")

    def _attempt(self) -> None:
        if not self._has_checked:
            self._check_before_spark()
        spark = self._session()
        if not self._has_checked:
            self._check_checkpoint(spark)
            self._has_checked = True
        if self._stop.is_set():
            return
        query = self._start(spark)
        self._say(states.RUNNING, "running", f"{self._pipeline.name}: running, query {query.id}.", query=str(query.id))
        while query.isActive:
            if self._stop.is_set():
                self._say(states.STOPPING, "stopping", f"{self._pipeline.name}: stopping after this batch ...")
                query.finish()
                break
            self._follow(query)
            self._stop.wait(POLL_S)
        self._follow(query)
        if not self._stop.is_set():
            query.awaitTermination()

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._sessions() if self._sessions is not None else self._open_session()
        return self._spark

    def _open_session(self) -> SparkSession:
        if (notice := slow_notice()) is not None:
            self._report.event("slow", notice)
        conf = {**self._pipeline.conf, **self._settings.conf}
        return open_session(self._pipeline.name, self._settings.master, conf, self._home.spark_log)

    def _start(self, spark: SparkSession) -> WriteQuery:
        from ottla.spark.pipeline.planning import make_plan
        from ottla.spark.sink.streaming import write_stream

        pipeline, settings = self._pipeline, self._settings
        plan = make_plan(spark, pipeline, settings.client)
        self._tables = plan.tables
        try:
            require_topics(self._address, plan.writes)
            if plan.has_dead_letters:
                ensure_dead_letter_topic(self._address, pipeline.dead_letter_topic)
            self._status = replace(self._status, topics=plan.writes)
            return write_stream(
                plan.frame,
                name=pipeline.name,
                bootstrap=settings.bootstrap,
                kafka=settings.client,
                checkpoint=self._checkpoint,
                group=pipeline.group,
                trigger=self._trigger(),
                output_mode=pipeline.mode,
                compression=pipeline.compression,
                tables=plan.tables,
                lineage=pipeline.lineage,
            )
        except BaseException:
            plan.tables.close()
            raise

    def _trigger(self) -> dict[str, Any] | None:
        if self._settings.once:
            return {"availableNow": True}
        return {"processingTime": self._pipeline.every} if self._pipeline.every else None

    def _wait_or_raise(self, verdict: Verdict) -> None:
        self._failures += 1
        few = ONCE_FAILURES_MAX if self._settings.once else None
        limit = {Retry.NEVER: 0, Retry.LIMITED: UNKNOWN_FAILURES_MAX, Retry.UNLIMITED: few}[verdict.retry]
        if limit is not None and self._failures > limit:
            tries = f" This was try {self._failures}." if limit else ""
            name = f"{self.what} '{self._pipeline.name}'"
            about = "" if verdict.sentence.startswith(name) else f"{name}: "
            raise OttlaError(f"{about}{verdict.sentence.rstrip('.')}.{tries}")
        if verdict.lost_session and self._spark is not None:
            close_session(self._spark)
            self._spark = None
            self._pipeline = self._reload() if self._reload is not None else self._pipeline
        pause_s = min(PAUSE_S_MAX, self._settings.pause_s_first * 2 ** min(10, self._failures - 1))
        pause_s *= random.uniform(0.8, 1.2)
        self._status = replace(self._status, restarts=self._status.restarts + 1)
        self._say(
            states.WAITING,
            "restarting",
            f"{self._pipeline.name}: {verdict.sentence.rstrip('.')}; starting again in {pause_s:.0f} s.",
            problem=verdict.sentence,
            pause_s=round(pause_s, 1),
        )
        self._stop.wait(pause_s)

    # --- what is seen of it

    def _follow(self, query: WriteQuery) -> None:
        last = query.lastProgress
        if last is None:
            return
        newest = int(last["batchId"])
        # Small batches may be over in less than the time between two looks.
        missed = newest > self._seen_batch + 1
        for progress in query.recentProgress if missed else [last]:
            self._take(figures(_plain(progress)))

    def _take(self, batch: BatchFigures) -> None:
        if batch.batch < self._seen_batch:
            return
        is_new = batch.has_run and batch.batch > self._seen_batch
        if is_new and self._tables is not None:
            batch = replace(batch, dead_letters=batch.dead_letters + self._tables.count_letters(batch.batch))
        status = replace(self._status, lag=batch.lag, input_rows_per_s=batch.input_rows_per_s, updated=time.time())
        if is_new:
            self._seen_batch, self._failures = batch.batch, 0
            status = replace(
                status,
                batch=batch.batch,
                rows_in=status.rows_in + batch.rows_in,
                bytes_in=status.bytes_in + batch.bytes_in,
                rows_out=status.rows_out + batch.rows_out,
                dead_letters=status.dead_letters + batch.dead_letters,
                late_rows=status.late_rows + batch.late_rows,
                dropped=status.dropped + batch.dropped,
                state_entries=batch.state_entries,
                batch_ms=batch.batch_ms,
            )
        if is_new or status.lag != self._status.lag:
            self._note(status)
        self._status = status
        if is_new:
            self._report.batch(status, batch)

    def _say(self, state: str, event: str, sentence: str, **facts: Any) -> None:
        problem = facts.get("problem", self._status.problem if state == states.WAITING else None)
        self._status = replace(self._status, state=state, updated=time.time(), problem=problem)
        self._note(
            self._status, sentence if problem is None or problem.rstrip(".") in sentence else f"{sentence} {problem}"
        )
        self._report.event(event, sentence, **facts)

    def _note(self, status: Status, sentence: str = "") -> None:
        """For those who look. A disk without room for that is told of by what cannot do without it."""
        with suppress(OSError):
            self._home.write(status)
            if sentence:
                self._home.log(sentence)

    def _totals(self) -> str:
        status = self._status
        dead = f", {status.dead_letters:,} dead letter{'s' * (status.dead_letters > 1)}" if status.dead_letters else ""
        late = f", {status.late_rows:,} too late" if status.late_rows else ""
        return f"{status.rows_in:,} rows in, {status.rows_out:,} out{dead}{late}"


def _plain(progress: Any) -> Any:
    """PySpark gives an object where it gave a dict before."""
    return json.loads(progress.json) if hasattr(progress, "json") else progress
