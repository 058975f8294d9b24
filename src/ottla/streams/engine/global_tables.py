"""Global tables on an executor: all of a topic, in this process's memory, as far as it is committed when a batch
begins.

Every process follows the topic by itself and keeps its place, so a batch reads what is new. As with Kafka Streams a
global table is not part of the transaction: a batch that runs again may see later values.
"""

from __future__ import annotations

import os

from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.streams.engine.changelogs import apply_record
from ottla.streams.engine.memory import RECORDS_BETWEEN_LOOKS
from ottla.streams.engine.task_state import TaskState, check_room, committed_reader, read_records
from ottla.streams.state.bytes_store import MemoryBytes
from ottla.streams.state.specs import StoreSpec

_kept: dict[tuple[int, str, str], TaskState] = {}


def open_global(
    settings: ClientSettings, application_id: str, generation: str, spec: StoreSpec, topic: str
) -> MemoryBytes:
    """`generation`: of the topic; one that was made anew has another."""
    key = (os.getpid(), generation, spec.name)
    state = _kept.setdefault(key, TaskState({spec.name: MemoryBytes()}))
    reader = committed_reader(settings)
    numbers = reader.partitions([topic])[topic]
    ends = {
        each: end.offset for each, end in reader.ends([TopicPartition(topic, number) for number in numbers]).items()
    }
    data = state.stores[spec.name]
    try:
        for number, (_, name, value, time_ms) in enumerate(read_records(reader, state, ends)):
            if name is not None:
                apply_record(spec, data, name, value, time_ms)
            if number % RECORDS_BETWEEN_LOOKS == 0:
                check_room(f"the global table of '{topic}' of application '{application_id}'", state)
    except BaseException:
        del _kept[key]  # half of it may have been read
        raise
    return data
