"""Where a consumer group that has read an old topic goes on in the new one.

Offsets say nothing across topics; times do. The next record that a group would have read has a time, and the group goes
on with the first record of the same partition of the new topic that has this time or a later one. A group that has read
everything goes on after the time of the last record that it has read. Keys lie in the same partitions, since the new
topic has as many. Where times are out of order a group may see some records again, or miss some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.client.lookup import EARLIEST, ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.streams.engine.task_state import TaskState, read_records

# How far back a group's last record is looked for: between two records lie at most a few markers of transactions.
_BACK = 1000


def equivalent_offsets(
    settings: ClientSettings, committed: Mapping[tuple[str, int], int], renamed: Mapping[str, str]
) -> dict[tuple[str, int], int]:
    """By partition of the new topics, for what the group has committed of the old ones."""
    found = {}
    with ClusterReader(replace(settings, is_committed_only=True)) as reader:
        for (old, number), offset in committed.items():
            if old in renamed:
                here, there = TopicPartition(old, number), TopicPartition(renamed[old], number)
                found[renamed[old], number] = _equivalent(reader, here, offset, there)
    return found


def _equivalent(reader: ClusterReader, here: TopicPartition, offset: int, there: TopicPartition) -> int:
    time_ms = _time_to_go_on(reader, here, offset)
    if time_ms is not None:
        at = reader.offsets({there: time_ms})[there]
        return at if at >= 0 else reader.ends([there])[there].offset
    return reader.offsets({there: EARLIEST})[there]


def _time_to_go_on(reader: ClusterReader, partition: TopicPartition, offset: int) -> int | None:
    """None: there is no record by which one could tell."""
    first = reader.offsets({partition: EARLIEST})[partition]
    end = reader.ends([partition])[partition].offset
    state = TaskState({})
    state.positions[partition] = max(first, offset)
    for _, _, _, time_ms in read_records(reader, state, {partition: end}) if end > offset else ():
        return time_ms
    state.positions[partition] = max(first, min(offset, end) - _BACK)
    last = None
    for _, _, _, time_ms in read_records(reader, state, {partition: min(offset, end)}):
        last = time_ms
    return None if last is None else last + 1
