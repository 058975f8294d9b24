"""`frame.write.format("ottla").mode("append")`: all rows or none.

Tasks return what they encoded as their commit messages. Spark passes on those of one attempt of each task, once every
task is done, and the driver publishes them in one transaction under a name that is used once. All of it passes through
the driver, so `spark.driver.maxResultSize` limits how much one write may be: beyond it nothing is written.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.client.cluster import ClusterClient
from ottla.client.producing import TransactionalProducer
from ottla.client.settings import parse_settings
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.kernel.compressing import NUMBERS
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.shape import check_columns

_COMPRESSION_DEFAULT = "lz4"


@dataclass
class EncodedByTask(WriterCommitMessage):
    batches: list[tuple[str, int, bytes]]


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver, pickled to the tasks and to the process that commits."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """Raises OttlaError for options and columns that cannot work."""
        address = parse_settings(options).address
        topic = options.get("topic")
        check_columns(schema, topic)
        compression = options.get("kafka.compression.type", _COMPRESSION_DEFAULT)
        if compression not in NUMBERS:
            raise OttlaError(f"there is no compression '{compression}': choose one of {', '.join(NUMBERS)}.")
        if topic is not None:
            with ClusterClient(address) as cluster:
                counts = {topic: len(cluster.leaders([topic]))}
        else:
            counts = {}
        self._plan = EncodePlan(address, topic, counts, NUMBERS[compression])
        self._name = f"ottla-write-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        encoded = self._plan.encode(iterator, task)
        return EncodedByTask([(topic, partition, data) for topic, partition, _, data in encoded])

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        done = [one for one in messages if isinstance(one, EncodedByTask)]
        if not any(one.batches for one in done):
            return
        with (
            ClusterClient(self._plan.address) as cluster,
            TransactionalProducer(cluster, self._name) as producer,
        ):
            producer.start()
            with producer.transaction():
                producer.produce(_all_batches(done))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to undo: nothing was sent."""


def _all_batches(messages: list[EncodedByTask]) -> Iterator[tuple[TopicPartition, Any]]:
    for message in messages:
        for topic, partition, data in message.batches:
            yield TopicPartition(topic, partition), data
