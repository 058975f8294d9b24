"""The state of a task on an executor: in this process's memory, as far as the changelog has it, and what the last batch
changed over it.

Which batch counts is in the log as well. Each run of a task writes a token of its own to the task topic, in the batch's
transaction. The next run looks for the last one that was committed: if it is that of the changes that lie here, they
are applied; if not, they are dropped, and what is missing is read from the changelog. So a process that was not there
for some batches, or that ran an attempt which did not count, catches up; a new one reads everything.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ottla.client.fetching import OffsetRange
from ottla.client.lookup import EARLIEST, ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.failures import Retriable
from ottla.common.ids import TopicPartition
from ottla.spark.source.loss import loss_handler
from ottla.spark.source.ranges import RECORDS
from ottla.spark.source.reading import kept_reader, read_ranges
from ottla.streams.engine.changelogs import apply_record
from ottla.streams.engine.garbage import collect_all
from ottla.streams.engine.identity import task_topic
from ottla.streams.engine.memory import RECORDS_BETWEEN_LOOKS, StateTooLarge, refusal, room_that_is_used_up, why_not
from ottla.streams.engine.overlay import OverlayBytes
from ottla.streams.state.bytes_store import MemoryBytes
from ottla.streams.state.specs import StoreSpec, changelog_topic

# Deletions stay in a compacted log for a day: a process that slept for long would miss them, so it reads all again.
_AGE_S_MAX = 3600.0


@dataclass
class TaskState:
    stores: dict[str, MemoryBytes]
    # Up to where each changelog was read.
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    token: str = ""
    remembered: dict[str, Any] | None = None
    pending: dict[str, OverlayBytes] = field(default_factory=dict)
    pending_token: str = ""
    used_s: float = 0.0

    def entries(self) -> int:
        return sum(map(len, (self.pending or self.stores).values()))


# By process, generation of the application's topics, and task.
_kept: dict[tuple[int, str, str], TaskState] = {}


def open_state(
    settings: ClientSettings,
    application_id: str,
    generation: str,
    task_id: str,
    partition: int,
    specs: Mapping[str, StoreSpec],
) -> TaskState:
    """As the last committed batch left it. `generation`: of the application's topics; after they were deleted and made
    anew, or on another cluster, it is another, and what is kept here does not count."""
    _drop_unused()
    key = (os.getpid(), generation, task_id)
    state = _kept.get(key)
    if state is None or state.stores.keys() != specs.keys():
        state = _kept[key] = TaskState({name: MemoryBytes() for name in specs})
    logs = {TopicPartition(changelog_topic(application_id, name), partition): spec for name, spec in specs.items()}
    tasks = TopicPartition(task_topic(application_id), partition)
    ends = _settled_ends(settings, [tasks, *logs])
    try:
        _follow_tasks(settings, state, tasks, ends[tasks], task_id)
        if state.pending_token and state.pending_token == state.token:
            for overlay in state.pending.values():
                overlay.apply()
            state.positions.update({log: ends[log] for log in logs})
        else:
            state.pending = {}
            _catch_up(settings, state, logs, ends, f"the state of task {task_id} of application '{application_id}'")
    except BaseException:
        del _kept[key]  # half of it may have been read
        raise
    state.pending, state.pending_token = {name: OverlayBytes(data) for name, data in state.stores.items()}, ""
    state.used_s = time.monotonic()
    return state


def _drop_unused() -> None:
    """Of tasks that run elsewhere now, and of applications that have ended."""
    oldest_s = time.monotonic() - _AGE_S_MAX
    for key in [key for key, state in _kept.items() if state.used_s < oldest_s]:
        del _kept[key]


def committed_reader(settings: ClientSettings) -> ClusterReader:
    """That of this process, for one thread."""
    return kept_reader(replace(settings, is_committed_only=True))


def _settled_ends(settings: ClientSettings, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the logs end, when no transaction is open in them: an answer to a commit may come before its markers."""
    committed = committed_reader(settings)
    everything = kept_reader(replace(settings, is_committed_only=False))
    deadline = committed.deadline(has_met=True)
    while True:
        stable = {partition: end.offset for partition, end in committed.ends(partitions).items()}
        latest = {partition: end.offset for partition, end in everything.ends(partitions).items()}
        if stable == latest:
            return stable
        if not deadline.pause():
            raise Retriable("a transaction in the changelogs of this application does not end.")


def read_records(
    reader: ClusterReader, state: TaskState, ends: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, bytes | None, bytes | None, int]]:
    """What is committed from where `state` stands to these ends; then it stands there."""
    unknown = [partition for partition in ends if partition not in state.positions]
    state.positions.update(reader.offsets(dict.fromkeys(unknown, EARLIEST)))
    ranges = [OffsetRange(*partition, state.positions[partition], end) for partition, end in ends.items()]
    ranges = [each for each in ranges if each.size > 0]
    for batch in read_ranges(reader, ranges, RECORDS, loss_handler(False), with_headers=False) if ranges else ():
        times = batch.column("timestamp").cast(pa.int64()).to_pylist()
        names, numbers = batch.column("topic").to_pylist(), batch.column("partition").to_pylist()
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        for name, number, key, value, time_us in zip(names, numbers, keys, values, times, strict=True):
            yield TopicPartition(name, number), key, value, time_us // 1000
    state.positions.update(ends)


def _follow_tasks(settings: ClientSettings, state: TaskState, tasks: TopicPartition, end: int, task_id: str) -> None:
    for _, key, value, _ in read_records(committed_reader(settings), state, {tasks: end}):
        if key == task_id.encode() and value is not None:
            noted = json.loads(value)
            state.token, state.remembered = noted["token"], noted["remembered"]


def _catch_up(
    settings: ClientSettings,
    state: TaskState,
    logs: Mapping[TopicPartition, StoreSpec],
    ends: Mapping[TopicPartition, int],
    what: str,
) -> None:
    records = read_records(committed_reader(settings), state, {log: ends[log] for log in logs})
    for number, (log, key, value, time_ms) in enumerate(records):
        spec = logs[log]
        assert key is not None
        apply_record(spec, state.stores[spec.name], key, value, time_ms)
        if number % RECORDS_BETWEEN_LOOKS == 0:
            check_room(what, state)


def check_room(what: str, state: TaskState) -> None:
    """Raises StateTooLarge. What is kept here for other tasks makes room first: it can be read again."""
    if room_that_is_used_up() is None:
        return
    drop_copies(but=state)
    room = room_that_is_used_up()
    if room is not None:
        raise StateTooLarge(refusal(what, why_not(state.entries(), room)))


def check_room_for_batch(application_id: str) -> None:
    """Of records, which are put in order before they are processed. What they compress to says nothing of that."""
    if room_that_is_used_up() is None:
        return
    drop_copies()
    room = room_that_is_used_up()
    if room is not None:
        raise batch_too_large(application_id, room.said)


def batch_too_large(application_id: str, why: str) -> StateTooLarge:
    return StateTooLarge(
        f"the records of one batch of application '{application_id}' do not fit into the memory of a worker: "
        f"{why}. Nothing of it was written. Choose a smaller `maxBytesPerTrigger`, or use more executors."
    )


def drop_copies(but: TaskState | None = None) -> None:
    for key in [key for key, state in _kept.items() if state is not but]:
        del _kept[key]
    collect_all()  # the operators of a task that has run hold one another, and its stores


def note(token: str, remembered: dict[str, Any]) -> bytes:
    """What a run of a task leaves in the task topic."""
    return json.dumps({"token": token, "remembered": remembered}, separators=(",", ":")).encode()
