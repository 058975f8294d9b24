"""The loop of `ottla consume`: read, print, and know when to stop.

Without a group the partitions are assigned by hand and nothing is committed. With one the group decides, and an offset
is stored for commit only after its record was written and flushed, so that a closed pipe or Ctrl-C never skips one. A
partition is finished where its span ends, or, when the end of the log counts (`-e`, or a span), at the end of the log.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ottla.cli.connection import Cluster
from ottla.cli.error_sentences import sentence
from ottla.cli.output import notice
from ottla.cli.records.positions import Bounds, Kind, Partition, Span, log_bounds, resolve
from ottla.cli.streams import cannot_write
from ottla.common.errors import OttlaError

POLL_S = 0.2  # the longest that Ctrl-C has to wait
SILENCE_S = 10.0  # then we look whether the topics are still there: librdkafka would wait for them without a word
BATCH = 500
WRITE_BYTES = 1 << 20

Printer = Callable[[Any], bytes]
Filter = Callable[[Any], bool]


@dataclass(frozen=True)
class Plan:
    """What to read, how to print it, when to stop."""

    topics: list[str]
    span: Span
    group: str | None
    partitions: list[int]
    count_max: int | None
    stop_at_end: bool
    isolation: str
    printer: Printer
    accepts: Filter


class Output:
    """Bytes that go to stdout once, together, with an exact account of how many are out, whenever Ctrl-C comes."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._counts: list[int] = []
        self._begun = False

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)

    def flush(self) -> bool:
        """Whether everything is out. A flush that Ctrl-C cut short is not taken up again: the reader may be stuck."""
        if not self._begun:
            self._begun = True
            data, stdout = memoryview(b"".join(self._pieces)), sys.stdout.fileno()
            while (out := sum(self._counts)) < len(data):
                # Written and noted in one call into C. Between two of ours Python may raise KeyboardInterrupt, and a
                # reader that interrupts us at the last line it wanted would find that line not committed.
                try:
                    self._counts.extend(map(os.write, (stdout,), (data[out:],)))
                except BrokenPipeError:
                    raise
                except OSError as error:
                    raise cannot_write(error) from None
        return sum(self._counts) == self.size


def consumer_settings(plan: Plan) -> dict[str, Any]:
    return {
        "group.id": plan.group or "ottla-cli",
        "enable.auto.commit": plan.group is not None,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": plan.isolation,
        "check.crcs": True,
        # librdkafka stops fetching while its queue is full, and then waits for a second
        "fetch.queue.backoff.ms": "10",
        "topic.metadata.propagation.max.ms": "5000",
        "auto.offset.reset": "latest" if plan.span.first.kind is Kind.END else "earliest",
    }


class Reader:
    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self._cluster = cluster
        self._plan = plan
        self._stops = plan.stop_at_end or plan.span.until is not None
        self._assigned = False
        self._open: set[Partition] = set()  # assigned, and its end not reached
        self._until: dict[Partition, int] = {}
        self._handled: dict[Partition, int] = {}  # the offset after the last one written, not stored yet
        self._printed = 0
        self._heard = False
        self._heard_s = time.monotonic()
        self._output = Output()

    def run(self) -> None:
        partitions = self._find_partitions()
        if self._plan.count_max == 0:
            return
        self._consumer = self._cluster.consumer(consumer_settings(self._plan))
        try:
            if self._plan.group is None:
                self._assign(partitions)
            else:
                self._subscribe()
            self._print_until_done()
        except BrokenPipeError:
            self._handled.clear()
            raise
        finally:
            self._settle()
            self._consumer.close()

    # -- where to begin --------------------------------------------------------------------------------------------

    def _find_partitions(self) -> list[Partition]:
        found: list[Partition] = []
        for topic, described in self._cluster.topics(self._plan.topics).items():
            present = sorted(partition.id for partition in described.partitions)
            for index in self._plan.partitions:
                if index not in present:
                    raise OttlaError(f"topic '{topic}' has no partition {index}: it has 0 to {present[-1]}.")
            found += [(topic, index) for index in self._plan.partitions or present]
        return found

    def _assign(self, partitions: list[Partition]) -> None:
        from confluent_kafka import IsolationLevel, TopicPartition

        isolation = IsolationLevel[self._plan.isolation.upper()]
        bounds = log_bounds(self._cluster, partitions, isolation)
        self._require_offset_exists(bounds)
        first = resolve(self._cluster, bounds, self._plan.span.first)
        if self._plan.span.until is not None:
            self._until = resolve(self._cluster, bounds, self._plan.span.until)
        wanted = [
            partition for partition in partitions if first[partition] < self._until.get(partition, first[partition] + 1)
        ]
        self._assigned = True
        self._open = set(wanted)
        self._consumer.assign([TopicPartition(topic, index, first[topic, index]) for topic, index in wanted])

    def _require_offset_exists(self, bounds: dict[Partition, Bounds]) -> None:
        """An offset that no partition has yet would wait for ever without a word."""
        position = self._plan.span.first
        if position.kind is not Kind.OFFSET or any(position.value <= bound.end for bound in bounds.values()):
            return
        some = list(bounds.items())[:3]
        ends = ", ".join(f"{topic}-{index} ends at {bound.end}" for (topic, index), bound in some)
        raise OttlaError(f"offset {position.value} is beyond the end ({ends}): see `ottla topic offsets`.")

    def _subscribe(self) -> None:
        def assigned(_: Any, partitions: Iterable[Any]) -> None:
            self._assigned = True
            self._open |= {(partition.topic, partition.partition) for partition in partitions}

        def revoked(_: Any, partitions: Iterable[Any]) -> None:
            self._settle()
            self._open -= {(partition.topic, partition.partition) for partition in partitions}

        self._consumer.subscribe(self._plan.topics, on_assign=assigned, on_revoke=revoked)

    # -- the loop --------------------------------------------------------------------------------------------------

    def _print_until_done(self) -> None:
        while not self._done():
            message = self._consumer.poll(POLL_S)
            if message is None:
                self._watch_connection()
                continue
            self._heard = True
            self._heard_s = time.monotonic()
            self._cluster.is_well()
            for received in (message, *self._consumer.consume(BATCH, 0)):
                self._take(received)
                if self._done():
                    break
                if self._output.size >= WRITE_BYTES:
                    self._settle()
            self._settle()

    def _done(self) -> bool:
        if self._plan.count_max is not None and self._printed >= self._plan.count_max:
            return True
        return self._stops and self._assigned and not self._open

    def _take(self, message: Any) -> None:
        partition = (message.topic(), message.partition())
        if (error := message.error()) is not None:
            if error.name() != "_PARTITION_EOF":
                raise OttlaError(sentence(error, f"{partition[0]}-{partition[1]}" if partition[0] else ""))
            self._handled[partition] = message.offset()  # past markers of transactions, which are no records
            if self._stops:
                self._open.discard(partition)
            return
        offset, until = message.offset(), self._until.get(partition)
        if until is None or offset < until:
            if self._plan.accepts(message):
                self._output.add(self._plan.printer(message))
                self._printed += 1
            self._handled[partition] = offset + 1
        if until is not None and offset + 1 >= until and partition in self._open:
            self._finish(partition)

    def _finish(self, partition: Partition) -> None:
        from confluent_kafka import TopicPartition

        self._open.discard(partition)
        self._consumer.pause([TopicPartition(*partition)])

    def _settle(self) -> None:
        """What was printed leaves the process; only then may the group forget it. Goes on where Ctrl-C cut it short."""
        if self._handled and self._output.flush():
            if self._plan.group is not None:
                self._store()
            self._handled.clear()
            self._output = Output()

    def _store(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        try:
            self._consumer.store_offsets(
                offsets=[TopicPartition(*partition, at) for partition, at in self._handled.items()]
            )
        except KafkaException:
            pass  # no longer ours: whoever has the partition now will print these again

    def _watch_connection(self) -> None:
        """Before the first answer a dead connection ends the command; later it is waited out, with a notice."""
        if not self._heard:
            self._cluster.check()
        elif self._cluster.is_lost():
            notice(f"ottla: lost {self._cluster.bootstrap}, trying again", colour="yellow")
        elif time.monotonic() - self._heard_s > SILENCE_S:
            self._heard_s = time.monotonic()
            if (gone := self._cluster.deleted_topic(self._plan.topics)) is not None:
                raise OttlaError(f"topic '{gone}' was deleted.")
