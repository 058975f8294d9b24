"""The part of a source's round that runs in a task: read, convert, encode, send to the driver's spool."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from ottla.client.cluster import ClusterClient
from ottla.connect.api import Offset, Partition, Read, Source
from ottla.connect.conversion import source_side
from ottla.connect.rounds.creating import TopicCreation
from ottla.connect.rounds.failing import Problem, problem_of
from ottla.spark.sink.encoding import EncodePlan
from ottla.spark.sink.spooling import Report, send_rows
from ottla.spark.spool.sending import SpoolTarget

# A partition and how far it was read.
Item = tuple[Partition, Offset | None]
_LOG = logging.getLogger("ottla.connect.reading")


@dataclass(frozen=True)
class ReadPlan:
    """All that a task has to know; goes to executors with it."""

    source: type[Source]
    config: Mapping[str, str]
    encoding: EncodePlan
    creation: TopicCreation
    bytes_max: int
    # After this time a task gives what it has: what is read slowly must not wait for the rest.
    seconds_max: float


class ReadResult(NamedTuple):
    report: Report | None
    offsets: list[tuple[Partition, Offset]]
    records: int
    skipped: int
    counts: dict[str, int]
    # There may be more right now.
    has_more: bool
    problem: Problem | None = None


@dataclass
class Reading:
    """Rows of some partitions, and what is known once they were taken."""

    plan: ReadPlan
    source: Source
    offsets: dict[int, tuple[Partition, Offset]] = field(default_factory=dict)
    records: int = 0
    skipped: int = 0
    has_more: bool = False

    def rows(self, items: Sequence[Item]) -> Iterator[pa.RecordBatch]:
        conversion = source_side(self.plan.config)
        counts = self.plan.encoding.partition_counts
        size, deadline_s = 0, time.monotonic() + self.plan.seconds_max
        for number, (partition, offset) in enumerate(items):
            if size >= self.plan.bytes_max or time.monotonic() > deadline_s:
                self.has_more = True
                return
            with _closed(self.source.read(partition, offset)) as pieces:
                for piece in pieces:
                    encoded = conversion.run(piece.records)
                    for sentence in (*piece.failures, *(failed.error for failed in encoded.failures)):
                        _LOG.warning("a record is left out: %s", sentence)
                    self.skipped += len(piece.failures) + len(encoded.failures)
                    if encoded.rows.num_rows:
                        self._make_topics(encoded.rows, counts)
                        size += encoded.rows.nbytes
                        self.records += encoded.rows.num_rows
                        yield encoded.rows
                    self.offsets[number] = (partition, piece.offset)
                    if size >= self.plan.bytes_max or time.monotonic() > deadline_s:
                        self.has_more = True
                        break

    def _make_topics(self, rows: pa.RecordBatch, counts: dict[str, int]) -> None:
        unknown = [topic for topic in rows.column("topic").unique().to_pylist() if topic not in counts]
        if unknown:
            with ClusterClient(self.plan.encoding.address) as cluster:
                for topic in unknown:
                    counts[topic] = self.plan.creation.count(cluster, topic)

    def result(self, report: Report | None) -> ReadResult:
        counts = dict(self.plan.encoding.partition_counts)
        return ReadResult(report, list(self.offsets.values()), self.records, self.skipped, counts, self.has_more)


def read_task(plan: ReadPlan, target: SpoolTarget, items: Sequence[Item]) -> ReadResult:
    """On an executor."""
    try:
        reading = Reading(plan, plan.source(plan.config))
        report = send_rows(plan.encoding, target, reading.rows(items), raises=True)
        return reading.result(report)
    except Exception as error:
        return ReadResult(None, [], 0, 0, {}, False, problem_of(error))


@contextmanager
def _closed(pieces: Iterator[Read]) -> Iterator[Iterator[Read]]:
    """A generator that is left early gives back what it holds."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
