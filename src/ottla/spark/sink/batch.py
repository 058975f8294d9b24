"""`frame.write.format("ottla").mode("append")`: all rows or none.

Spark plans a write in one process, runs its tasks in others and commits it in yet another, all on its own. So the
writer, which goes to all of them, knows where the driver's spool is: tasks send there what they encode, and return a
small message that says so. Spark passes on the messages of one attempt of each task, once every task is done. What
these attempts sent is published from the spool's files, in one transaction under a name that is used once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.client.cluster import ClusterClient
from ottla.client.producing import TransactionalProducer
from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.kernel.compressing import NUMBERS
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.shape import check_columns
from ottla.spark.sink.spooling import EncodedFrame, Report, encoded_by, send_rows
from ottla.spark.sink.transacting import Transacting
from ottla.spark.spool.sending import SpoolAddress, SpoolTarget, begin
from ottla.spark.spool.wire import SpoolRefused

_COMPRESSION_DEFAULT = "lz4"
_RETRY_TIMEOUT_S = 60.0


@dataclass
class TaskIsDone(WriterCommitMessage):
    report: Report


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver, pickled to the tasks and to the process that commits."""

    def __init__(self, options: Mapping[str, str], schema: StructType, spool: SpoolAddress) -> None:
        """Raises OttlaError for options and columns that cannot work, and when there is no place for the rows."""
        client = parse_settings(options)
        topic = options.get("topic")
        check_columns(schema, topic)
        compression = options.get("kafka.compression.type", _COMPRESSION_DEFAULT)
        if compression not in NUMBERS:
            raise OttlaError(f"there is no compression '{compression}': choose one of {', '.join(NUMBERS)}.")
        if topic is not None:
            with ClusterClient(client.address) as cluster:
                counts = {topic: len(cluster.leaders([topic]))}
        else:
            counts = {}
        self._timeout_ms = client.transaction_timeout_ms
        self._plan = EncodePlan(client.address, topic, counts, NUMBERS[compression])
        try:
            self._batch = begin(spool)
        except SpoolRefused as refused:
            raise OttlaError(str(refused)) from None
        self._target = SpoolTarget(spool, str(self._batch.path))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return TaskIsDone(send_rows(self._plan, self._target, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        try:
            reports = [message.report for message in messages if isinstance(message, TaskIsDone)]
            encoded = encoded_by(self._batch, reports)
            if encoded.bytes:
                self._publish(encoded)
        finally:
            self._batch.close()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was published: what was sent goes, and attempts that still run are told that it is over."""
        self._batch.close()

    def _publish(self, encoded: EncodedFrame) -> None:
        with (
            ClusterClient(self._plan.address) as cluster,
            TransactionalProducer(
                cluster,
                f"ottla-write-{uuid.uuid4()}",
                transaction_timeout_ms=self._timeout_ms,
                retry_timeout_s=_RETRY_TIMEOUT_S,
            ) as producer,
        ):
            producer.start()
            transaction = _Write(producer, encoded)
            Transacting(
                producer,
                timeout_ms=self._timeout_ms,
                retry_timeout_s=_RETRY_TIMEOUT_S,
                too_long="write the rows in parts",
            ).run(transaction.transact, transaction.is_committed)


class _Write:
    """One transaction without a marker: whether a commit that nobody answered was decided is not known afterwards."""

    def __init__(self, producer: TransactionalProducer, encoded: EncodedFrame) -> None:
        self._producer = producer
        self._encoded = encoded
        self._is_unclear = False

    def transact(self) -> None:
        self._producer.begin()
        self._producer.produce(self._encoded)
        self._producer.flush()
        self._is_unclear = True
        self._producer.commit()

    def is_committed(self) -> bool:
        if self._is_unclear:
            raise OttlaError(
                f"the cluster did not answer for {_RETRY_TIMEOUT_S:g} s whether the rows are written: look for them "
                "before you write them again."
            )
        return False
