"""A process watched on a cluster: reads the topics of its steps, tells the machine, and notes how far it is.

Offsets are committed to a group of its own, so that lag tools see the watch; the cut and the counts of the machine
stand beside them, in the metadata of each. A restart reads again from one horizon before the cut.

What is behind is read in slices of time, all topics up to the same moment, and the machine goes on after each: so it
never has to remember a topic that was read far ahead of the others.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ottla.client.admin.group_offsets import committed_offsets
from ottla.client.admin.offsets_of_groups import commit_alone
from ottla.client.cluster import ClusterClient
from ottla.client.fetching import Fetched, OffsetRange
from ottla.client.lookup import EARLIEST, ClusterReader
from ottla.client.producing import Committed
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.kernel.decode import Decoder
from ottla.kernel.errors import CorruptRecords
from ottla.tracing.limits import Stopped
from ottla.tracing.model import Position
from ottla.tracing.process.definition import Process
from ottla.tracing.process.machine import Cut, Machine
from ottla.tracing.process.report import ProcessReport
from ottla.tracing.search import fetched_answers

# How many slices what is behind is read in at most: one takes a question to every broker.
_SLICES_MAX = 200
_SLICE_MS_MIN = 1000
_PROBLEMS_MAX = 32


class ProcessWatch:
    def __init__(
        self,
        cluster: ClientSettings,
        process: Process,
        *,
        since_ms: int = 0,
        is_resumable: bool = True,
        is_cancelled: Callable[[], bool] = lambda: False,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`since_ms`: instances that began earlier are left alone; an earlier run that has got further counts instead.
        Without `is_resumable` nothing is committed, and no earlier run is looked for."""
        self.process = process
        self._settings = cluster
        self._reader = ClusterReader(replace(cluster, is_committed_only=True))
        self._since_ms = since_ms
        self._is_resumable = is_resumable
        self._is_cancelled = is_cancelled
        self._now_ms = now_ms
        self._machine: Machine | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._read_to_ms = 0
        self.records = 0
        self.bytes = 0
        # Sentences about records that could not be read.
        self.problems: deque[str] = deque(maxlen=_PROBLEMS_MAX)
        self._steps = {
            topic: [(number, step) for number, step in enumerate(process.steps) if step.topic == topic]
            for topic in process.topics
        }
        self._with_headers = any(
            criterion.needs_headers
            for step in process.steps
            for criterion in (step.id, *(wanted for wanted, _ in step.when))
        )

    def close(self) -> None:
        self._reader.close()

    def round(self) -> ProcessReport:
        """Read all that is there now, and judge. Raises OttlaError; the next round goes on where this one ended."""
        if self._machine is None:
            self._reader.any_broker()  # that nobody is there is told at once
        partitions = self._partitions()
        machine = self._begin() if self._machine is None else self._machine
        for partition, start in self._starts([place for place in partitions if place not in self._positions]).items():
            self._positions[partition] = start
        began_ms = self._now_ms()
        ends = {partition: end.offset for partition, end in self._reader.ends(partitions).items()}
        try:
            for until_ms in self._moments(ends, began_ms):
                self._read_until(machine, ends, until_ms if until_ms < began_ms else None)
                machine.advance(until_ms)
                self._read_to_ms = until_ms
        except Stopped:
            return machine.report()
        if self._is_resumable:
            self._commit(machine)
        return machine.report()

    # --- where it begins

    def _partitions(self) -> list[TopicPartition]:
        found = self._reader.partitions(self.process.topics)
        for step in self.process.steps:
            if step.topic not in found:
                raise OttlaError(
                    f"process '{self.process.name}' has the step '{step.name}' in topic '{step.topic}', which does not "
                    "exist: `ottla topic list` shows what there is."
                )
        return [TopicPartition(topic, number) for topic, numbers in sorted(found.items()) for number in numbers]

    def _begin(self) -> Machine:
        noted = self._noted() if self._is_resumable else None
        cut = noted or Cut(self._since_ms, {})
        self._machine = Machine(self.process, cut)
        self._read_to_ms = max(0, cut.before_ms - self.process.horizon_ms)
        return self._machine

    def _noted(self) -> Cut | None:
        """What an earlier run has left. All partitions say the same, unless a commit was broken off: then the earliest
        cut is safe, with the counts that belong to it."""
        with ClusterClient(self._settings.address, client_id=self._settings.client_id) as client:
            found = [
                _parsed(committed.metadata) for committed in committed_offsets(client, self.process.group).values()
            ]
        cuts = [cut for cut in found if cut is not None]
        return min(cuts, key=lambda cut: cut.before_ms) if cuts else None

    def _starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """A partition that is new since the last round is read from its beginning, as its records are new, too."""
        if not partitions:
            return {}
        is_first = not self._positions
        if is_first and self._read_to_ms > 0:
            ends = self._reader.ends(partitions)
            found = self._reader.offsets(dict.fromkeys(partitions, self._read_to_ms))
            return {place: offset if offset >= 0 else ends[place].offset for place, offset in found.items()}
        return self._reader.offsets(dict.fromkeys(partitions, EARLIEST))

    # --- reading

    def _moments(self, ends: dict[TopicPartition, int], now_ms: int) -> list[int]:
        """Up to when each slice goes; the last one up to now."""
        start_ms = self._read_to_ms or self._first_ms(ends) or now_ms
        slice_ms = max(self.process.horizon_ms, (now_ms - start_ms) // _SLICES_MAX, _SLICE_MS_MIN)
        return [*range(start_ms + slice_ms, now_ms, slice_ms), now_ms]

    def _first_ms(self, ends: dict[TopicPartition, int]) -> int | None:
        """The time of the oldest record, as far as partitions begin with one."""
        firsts = [
            OffsetRange(*place, start, start + 1) for place, start in self._positions.items() if start < ends[place]
        ]
        found: list[int] = []
        for fetched in fetched_answers(self._reader, firsts, self.problems.append):
            try:
                columns = Decoder(fetched.records, fetched.start, fetched.range.end, fetched.aborted).next_columns()
            except CorruptRecords:
                continue  # told when it is to be read
            if columns is not None:
                found.append(_ms(columns[3])[0])
        return min((moment for moment in found if moment > 0), default=None)

    def _read_until(self, machine: Machine, ends: dict[TopicPartition, int], until_ms: int | None) -> None:
        targets = ends
        if until_ms is not None:
            found = self._reader.offsets(dict.fromkeys(ends, until_ms))
            targets = {place: min(end, found[place]) if found[place] >= 0 else end for place, end in ends.items()}
        ranges = [
            OffsetRange(*place, self._positions[place], end)
            for place, end in targets.items()
            if self._positions[place] < end
        ]
        for fetched in fetched_answers(self._reader, ranges, self.problems.append):
            if self._is_cancelled():
                raise Stopped("cancelled")
            self._take(machine, fetched)
        for wanted in ranges:
            self._positions[wanted.where] = wanted.end

    def _take(self, machine: Machine, fetched: Fetched) -> None:
        """The position moves on with each piece: no record is told twice, whatever breaks in between."""
        where, (topic, partition, _, end, _) = fetched.range.where, fetched.range
        start = max(fetched.start, self._positions[where])
        decoder = Decoder(fetched.records, start, end, fetched.aborted, self._with_headers)
        self.bytes += len(fetched.records)
        try:
            while (columns := decoder.next_columns()) is not None:
                self.records += len(columns[0])
                self._observe(machine, topic, partition, columns)
                self._positions[where] = columns[2][len(columns[2]) - 1].as_py() + 1
        except CorruptRecords as error:
            self.problems.append(f"{where}: {error}.")

    def _observe(self, machine: Machine, topic: str, partition: int, columns: list[Any]) -> None:
        keys, values, offsets = (column.to_pylist() for column in columns[:3])
        moments = _ms(columns[3])
        headers: list[Any] = [()] * len(keys)
        if self._with_headers:
            headers = [
                tuple((header["key"], header["value"]) for header in own or ()) for own in columns[5].to_pylist()
            ]
        for key, value, offset, moment, own in zip(keys, values, offsets, moments, headers, strict=True):
            for number, step in self._steps[topic]:
                if step.holds(key, value, own):
                    machine.observe(number, step.id_of(key, value, own), moment, Position(topic, partition, offset))

    # --- how far it is

    def _commit(self, machine: Machine) -> None:
        cut = machine.cut()
        note = json.dumps({"process": self.process.name, "cut_ms": cut.before_ms, "counts": cut.counts})
        offsets = {place: Committed(offset, note) for place, offset in self._positions.items()}
        with ClusterClient(self._settings.address, client_id=self._settings.client_id) as client:
            commit_alone(client, self.process.group, offsets)


def _ms(stamps: Any) -> list[int]:
    return [moment // 1000 for moment in stamps.cast(pa.int64()).to_pylist()]


def _parsed(metadata: str) -> Cut | None:
    try:
        found = json.loads(metadata)
        counts = {str(name): int(count) for name, count in found["counts"].items()}
        return Cut(int(found["cut_ms"]), counts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
