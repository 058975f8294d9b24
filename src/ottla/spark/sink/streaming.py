"""`write_stream`: a streaming DataFrame to topics, exactly once.

    query = ottla.spark.write_stream(
        enriched,                       # columns: value, and key, headers, topic, partition, timestamp if wanted
        name="orders-enriched",         # of the query, its transactional id and its consumer group
        bootstrap="127.0.0.1:9092",
        topic="orders-enriched",        # for rows without a topic of their own
        checkpoint="/data/checkpoints/orders-enriched",
    )
    query.awaitTermination()

Every micro-batch is one transaction: its rows (to as many topics as you like), the source's offsets and a marker.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.settings import parse_named
from ottla.common.errors import OttlaError
from ottla.common.guarantees import EXACTLY_ONCE, check_guarantee
from ottla.common.lineage import of_batch, ranges_between, writer_of
from ottla.kernel.compressing import NUMBERS
from ottla.spark.requirements import refuse_connect
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.spark.sink.copies import Copies
from ottla.spark.sink.copy_plan import copy_of
from ottla.spark.sink.driver_spool import driver_spool
from ottla.spark.sink.encoding import BatchLineage, EncodePlan
from ottla.spark.sink.in_tasks import Counts, PickledWork, Work, counted, spooled_by_work
from ottla.spark.sink.keeping import RowsLost, computed_once
from ottla.spark.sink.load import Load
from ottla.spark.sink.manifest import Manifests
from ottla.spark.sink.marker import MARKER_TOPIC, Marker, digest_of
from ottla.spark.sink.publishing import Publisher, PublisherSettings
from ottla.spark.sink.shape import check_columns, described, merged, shaped
from ottla.spark.sink.spooling import EncodedFrame, encode_here, spooled
from ottla.spark.spool.server import SpoolServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
LOCAL_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_NOTED_S_MAX = 5.0
_KEEPING_TRIES_MAX = 3
# What was counted of the last batches; Spark itself keeps the reports of a hundred, unless it is told otherwise.
_COUNTED_MAX = 1_000
Outputs = Callable[["DataFrame"], "DataFrame | Sequence[DataFrame]"]


class Tables(Protocol):
    """Frames that the query joins with and that change between batches; a manifest says how far they are."""

    @property
    def names(self) -> list[str]:
        """Of all that there are."""
        ...

    def with_lookups(self, frame: DataFrame) -> DataFrame: ...

    def open(self, checkpoint: Checkpoint, manifests: Manifests, on_failure: Callable[[Exception], None]) -> None: ...

    def dead_letters(self, batch: int) -> list[DataFrame]: ...

    def batch_done(self) -> None: ...

    def close(self) -> None: ...


_log = logging.getLogger("ottla.spark")


class WriteQuery(StreamingQuery):
    """Spark's StreamingQuery, whose failures are told in one sentence where we know one."""

    def __init__(self, query: StreamingQuery, writer: _BatchWriter) -> None:
        super().__init__(query._jsq)
        self._writer = writer

    @property
    def failure(self) -> OttlaError | None:
        """Why writing failed, if it did."""
        return self._writer.failure

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        try:
            has_ended = super().awaitTermination(timeout)
        except Exception as error:
            self._writer.close()
            if self._writer.failure is not None:
                raise self._writer.failure from None
            # Spark has made a text of what was raised while a batch was written.
            raise error from self._writer.error
        if has_ended is not False:  # nor is None: there was no time limit
            self._writer.close()
        return has_ended

    @property
    def lastProgress(self) -> StreamingQueryProgress | None:
        """Spark's; where its tasks have read the records themselves, with what they counted."""
        last = super().lastProgress
        return None if last is None else self._with_counts(last)

    @property
    def recentProgress(self) -> list[StreamingQueryProgress]:
        return [self._with_counts(progress) for progress in super().recentProgress]

    def _with_counts(self, progress: StreamingQueryProgress) -> StreamingQueryProgress:
        counts = self._writer.counts.get(progress.batchId)
        if counts is None or "addBatch" not in progress.durationMs:
            return progress
        told = counted(json.loads(progress.json), counts, self._writer.observed(counts))
        return StreamingQueryProgress.fromJson(told)

    def stop(self) -> None:
        super().stop()
        self._writer.close()

    def finish(self) -> None:
        """Stop at a batch boundary: the batch that is being written is finished, and no other is begun."""
        with self._writer.turn:
            self._wait_until_noted()
            self.stop()

    def _wait_until_noted(self) -> None:
        """Spark notes that a batch is done after it was written; without the note it would run once more."""
        deadline = time.monotonic() + _NOTED_S_MAX
        while self.isActive and time.monotonic() < deadline:
            last = self.lastProgress
            if self._writer.batch_id is None or (last is not None and last["batchId"] >= self._writer.batch_id):
                return
            time.sleep(0.02)


def write_stream(
    frame: DataFrame,
    *,
    name: str,
    bootstrap: str,
    checkpoint: str,
    topic: str | None = None,
    outputs: Outputs | None = None,
    group: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    output_mode: str = "append",
    compression: str = "lz4",
    compression_level: int | None = None,
    batch_bytes: int = 512 * 1024,
    transaction_timeout_ms: int | None = None,
    marker_topic: str = MARKER_TOPIC,
    kafka: Mapping[str, str] | None = None,
    tables: Tables | None = None,
    has_state: bool = True,
    processing_guarantee: str = EXACTLY_ONCE,
    transactional_topics: Collection[str] = (),
    lineage: bool = False,
    work: Work | None = None,
) -> WriteQuery:
    """Start a query that writes `frame` to topics exactly once. Raises OttlaError for what cannot work.

    `outputs` turns each micro-batch, a plain DataFrame, into one or several DataFrames to be written in the same
    transaction, such as good rows and dead letters; an empty list writes nothing. Without it the rows of `frame` are
    written. `trigger` are the arguments of Spark's own `trigger`, such as {"availableNow": True}. `group` is the
    consumer group that shows how far the sources were read; it is called like the query if not said otherwise. `kafka`
    are settings of Kafka's clients, such as {"security.protocol": "SSL", "ssl.ca.location": "/etc/ca.pem",
    "transaction.timeout.ms": "120000"}. `has_state`: whether Spark may keep state for the query. A batch that was
    published is computed once more for its sake; where there is none, its functions are not called again.
    `processing_guarantee`: "exactly_once_v2", or "at_least_once", which writes rows without a transaction: they are
    seen at once, and some of them twice when a batch is broken off. When all are written, offsets and marker follow,
    in one transaction with the rows of `transactional_topics`.
    `lineage`: every record names in a header what it was made of, for `ottla trace`: exactly if its row has a column
    `_lineage` with TOPIC/PARTITION/OFFSET, as concat_ws('/', topic, partition, offset) of a source's columns; else the
    batch with its offsets.
    `work`: makes of a task's rows those that are written, in the process that encodes them (`in_tasks.py`).
    """
    refuse_connect(frame)
    if work is not None and outputs is not None:
        raise OttlaError("rows are made by `work` or by `outputs`, not by both.")
    check_guarantee(processing_guarantee)
    if compression not in NUMBERS:
        raise OttlaError(f"there is no compression '{compression}': choose one of {', '.join(NUMBERS)}.")
    if not frame.isStreaming:
        raise OttlaError('this DataFrame is not a stream: write it with `frame.write.format("ottla")`.')
    if outputs is None and work is None:
        check_columns(frame.schema, topic, lineage=lineage)
    timeout = {} if transaction_timeout_ms is None else {"transaction.timeout.ms": str(transaction_timeout_ms)}
    client = parse_named(bootstrap, {**(kafka or {}), **timeout})
    address = client.address
    settings = PublisherSettings(
        address,
        name,
        group or name,
        marker_topic,
        client.transaction_timeout_ms,
        transactional_topics=None if processing_guarantee == EXACTLY_ONCE else frozenset(transactional_topics),
    )
    plan = EncodePlan(address, topic, codec=NUMBERS[compression], level=compression_level, batch_bytes=batch_bytes)
    load = Load(is_bound_to_input=output_mode != "complete")
    publisher = Publisher(settings)
    publisher.check_cluster(topic)
    place = Checkpoint(frame.sparkSession, checkpoint)
    _choose_file_manager(frame.sparkSession, is_local=place.local is not None)
    spool = driver_spool(frame.sparkSession)
    spool.open_folder()
    pickled = None if work is None else PickledWork.of(work)
    copies = None
    if work is None and outputs is None and (tables is None or not tables.names):
        # A query that only copies needs records nowhere but in the tasks that read them.
        found = copy_of(frame, lineage=lineage)
        if found is not None:
            frame, copies = found[0], Copies(found[1], spool)
    writer = _BatchWriter(
        publisher, spool, place, plan, outputs, load, tables, has_state, name if lineage else None, pickled, copies
    )
    try:
        joined = frame if tables is None else tables.with_lookups(frame)
        started = joined.writeStream.queryName(name).outputMode(output_mode).option("checkpointLocation", checkpoint)
        if trigger is not None:
            started = started.trigger(**trigger)
        writer.open()
        return WriteQuery(started.foreachBatch(writer.write).start(), writer)
    except BaseException:
        writer.close()  # Spark refused the query: nobody else would
        raise


def _choose_file_manager(spark: SparkSession, *, is_local: bool) -> None:
    """Spark's default starts processes for every file of a checkpoint. On a local disk a rename is atomic without them;
    elsewhere it may not be."""
    if is_local and spark.conf.get(FILE_MANAGER, None) is None:
        spark.conf.set(FILE_MANAGER, LOCAL_FILE_MANAGER)
    elif not is_local and spark.conf.get(FILE_MANAGER, None) == LOCAL_FILE_MANAGER:
        spark.conf.unset(FILE_MANAGER)


class _BatchWriter:
    """What Spark calls for every micro-batch, on the driver."""

    def __init__(
        self,
        publisher: Publisher,
        spool: SpoolServer,
        checkpoint: Checkpoint,
        plan: EncodePlan,
        outputs: Outputs | None,
        load: Load,
        tables: Tables | None,
        has_state: bool,
        lineage_name: str | None = None,
        work: Work | None = None,
        copies: Copies | None = None,
    ) -> None:
        """`lineage_name`: what rows say they were written by, if they are to say what they were made of. `work`: what
        makes them in the tasks. `copies`: of a query that does nothing else."""
        self.publisher = publisher
        self._spool = spool
        # What ended the query, if it was a batch, and the same if we know a sentence for it.
        self.error: Exception | None = None
        self.failure: OttlaError | None = None
        # Held while a batch is written.
        self.turn = threading.Lock()
        self.batch_id: int | None = None
        # What was counted of the last batches, by the work in their tasks.
        self.counts: dict[int, Counts] = {}
        self._work = work
        self._copies = copies
        self._checkpoint = checkpoint
        self._tables = tables
        self._manifests = Manifests(checkpoint)
        self._run_again = checkpoint.unfinished_batch()
        self._plan = plan
        self._outputs = outputs
        self._load = load
        self._has_state = has_state
        self._lineage_name = lineage_name
        self._query_id = ""
        self._topics: set[str] = {plan.topic} if plan.topic is not None else set()

    def open(self) -> None:
        if self._tables is not None:
            self._tables.open(self._checkpoint, self._manifests, self._fail)

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.failure = error if isinstance(error, OttlaError) else None

    def write(self, frame: DataFrame, batch_id: int) -> None:
        # `finish` has it and waits for the query to end: to wait for it would be to wait for each other.
        if not self.turn.acquire(blocking=False):
            raise OttlaError("the query is being stopped.")
        try:
            self.batch_id = batch_id
            self._write(frame, batch_id)
            if self._tables is not None:
                self._tables.batch_done()
        except Exception as error:
            self._fail(error)
            raise
        finally:
            self.turn.release()

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        self._query_id = self._query_id or self._checkpoint.query_id()
        end = self._checkpoint.end(batch_id)
        if self.publisher.is_published(self._query_id, batch_id, end.offsets):
            # The plan runs all the same: stateful operators must get to the state that follows this batch.
            if self._copies is not None:
                self._count(batch_id, self._copies.counted(frame, self._plan))
            elif self._has_state:
                frame.write.format("noop").mode("overwrite").save()
            if self._tables is not None:
                self._tables.dead_letters(batch_id)  # published as well: they are counted
            return
        marker = Marker(self._query_id, batch_id, end.offsets)
        records = None if end.is_partial or self.publisher.last is None else marker.records_since(self.publisher.last)
        with ExitStack() as stack:
            encoded = self._encoded(frame, batch_id, is_small=self._load.is_small(records), stack=stack)
            self.publisher.publish(marker, encoded)
        self._count(batch_id, encoded.counts)
        self._topics |= encoded.topics
        self._load.note(records, encoded.bytes)

    def _encoded(self, frame: DataFrame, batch_id: int, *, is_small: bool, stack: ExitStack) -> EncodedFrame:
        """All that the batch writes, there until `stack` is left."""
        plan = replace(
            self._plan,
            partition_counts=self._partition_counts(batch_id),
            turn=batch_id,
            lineage=self._lineage(batch_id),
        )
        if self._copies is not None:
            return self._copies.encoded(frame, plan, is_small=is_small, stack=stack)
        if self._work is not None:
            return stack.enter_context(spooled_by_work(frame, self._work, plan, self._spool))
        letters = self._tables.dead_letters(batch_id) if self._tables is not None else []
        if self._outputs is None:
            return self._encoded_frames([frame, *letters], plan, is_small, stack)
        tries = 0
        while True:
            tries += 1
            try:
                with computed_once(frame) as kept:
                    return self._encoded_frames([*_several(self._outputs(kept)), *letters], plan, is_small, stack)
            except RowsLost as lost:
                # Nothing of it was published: all of it is computed anew, wherever the rows were.
                if tries == _KEEPING_TRIES_MAX:
                    raise
                _log.warning("%s Computing batch %d again.", lost, batch_id)

    def _encoded_frames(
        self, frames: list[DataFrame], plan: EncodePlan, is_small: bool, stack: ExitStack
    ) -> EncodedFrame:
        if not frames:
            return EncodedFrame(0, tuple)
        for part in frames:
            check_columns(part.schema, plan.topic, lineage=plan.lineage is not None)
        frame = merged([shaped(part, lineage=plan.lineage is not None) for part in frames])
        if is_small and (encoded := _encoded_here(frame, plan)) is not None:
            return encoded
        return stack.enter_context(spooled(frame, plan, self._spool))

    def _count(self, batch_id: int, counts: Counts | None) -> None:
        if counts is not None:
            self.counts[batch_id] = counts
            self.counts.pop(batch_id - _COUNTED_MAX, None)

    def observed(self, counts: Counts) -> Mapping[str, Mapping[str, int]] | None:
        """What Spark would have observed in rows, where that is known of what was counted."""
        return None if self._copies is None else self._copies.observed(counts)

    def _lineage(self, batch_id: int) -> BatchLineage | None:
        """The same again if the batch runs again: it is made of what the checkpoint says."""
        name = self._lineage_name
        if name is None:
            return None
        # Of the first batch Spark has not noted where it began.
        before = self._checkpoint.end(batch_id - 1).offsets if batch_id else {}
        after = self._checkpoint.end(batch_id).offsets
        ranges = ranges_between(before, after)
        return BatchLineage(writer_of(name, batch_id), of_batch(name, batch_id, digest_of(after), ranges))

    def _partition_counts(self, batch_id: int) -> dict[str, int]:
        """Of the topics that were written to before, as the manifest says: tasks need not look them up, and a batch
        that runs again sends its keys where it did. Only where a topic was made anew with fewer is that impossible."""
        manifest = self._manifests.holding(batch_id)
        noted = manifest.partition_counts
        here = self.publisher.partition_counts(self._topics | noted.keys())
        if batch_id == self._run_again:
            return {topic: min(count, noted.get(topic, count)) for topic, count in here.items()}
        self._manifests.write(batch_id, replace(manifest, partition_counts=here))
        return here

    def close(self) -> None:
        self.publisher.close()
        if self._copies is not None:
            self._copies.close()
        if self._tables is not None:
            self._tables.close()


def _several(made: Any) -> list[DataFrame]:
    from pyspark.sql import DataFrame

    frames = list(made) if isinstance(made, Sequence) and not isinstance(made, str) else [made]
    if not all(isinstance(part, DataFrame) for part in frames):
        raise OttlaError(f"`outputs` must return a DataFrame or a list of DataFrames, but returned {described(made)}.")
    if any(part.isStreaming for part in frames):
        raise OttlaError("`outputs` returned a stream: make what it returns of the micro-batch that it is given.")
    return frames


def _encoded_here(frame: DataFrame, plan: EncodePlan) -> EncodedFrame | None:
    """None when it cannot be done here. That it was judged to be small does not make it so, and Spark does not let the
    driver have just anything; the executors then tell what is wrong, if something is."""
    try:
        return encode_here(frame, plan)
    except OttlaError:
        raise
    except Exception:
        return None
