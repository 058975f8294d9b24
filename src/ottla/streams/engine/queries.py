"""Interactive queries: the stores of an application, read-only, from any process that reaches its cluster.

    with StoreReader(topology, "word-count", "127.0.0.1:9092") as stores:
        stores.store("counts").get("to")

What is read are the changelogs, as far as they are committed. A look reads what is new since the last one, so it sees
all batches that were committed when it began (`as_of_ms` says when that was): it is as old as the look itself, and
what the running batch changes is not seen before it is committed. Partitions are put together, so ranges go over all
of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from ottla.client.lookup import ClusterReader
from ottla.client.settings import parse_named
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.streams.engine.changelogs import apply_record
from ottla.streams.engine.task_state import TaskState, read_records
from ottla.streams.state.bytes_store import MemoryBytes
from ottla.streams.state.specs import StoreKind, changelog_topic
from ottla.streams.topology import SourceNode, Topology

_SHOWN = (StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED, StoreKind.VERSIONED, StoreKind.WINDOW, StoreKind.SESSION)
# What only reads; everything else a store can do is refused.
_READS = (
    "all",
    "approximate_num_entries",
    "fetch",
    "fetch_all",
    "fetch_session",
    "find_sessions",
    "get",
    "prefix_scan",
    "range",
    "reverse_all",
)


class StoreReader:
    """For any number of threads, one at a time."""

    def __init__(
        self, topology: Topology, application_id: str, bootstrap: str, *, kafka: Mapping[str, str] | None = None
    ) -> None:
        self._topology = topology
        self._application_id = application_id
        self._reader = ClusterReader(replace(parse_named(bootstrap, kafka or {}), is_committed_only=True))
        self._lock = threading.Lock()
        self._states: dict[str, TaskState] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    @property
    def names(self) -> list[str]:
        return [name for name, spec in self._topology.stores.items() if spec.kind in _SHOWN]

    def store(self, name: str) -> ReadOnlyStore:
        if name not in self.names:
            raise OttlaError(f"there is no store '{name}' to look into: there are {', '.join(self.names) or 'none'}.")
        return ReadOnlyStore(self, name)

    def look(self, name: str, ask: Callable[[Any], Any]) -> tuple[Any, int]:
        """What `ask` makes of the store as it is now, and when that was, in ms."""
        with self._lock:
            as_of_ms = int(time.time() * 1000)
            spec, state = self._topology.stores[name], self._caught_up(name)
            found = ask(spec.open(state.stores[name], self._application_id))
            # While the lock is held: what is read later would be another store.
            return list(found) if isinstance(found, Iterator) else found, as_of_ms

    def _caught_up(self, name: str) -> TaskState:
        spec, topic = self._topology.stores[name], self._topic(name)
        numbers = self._reader.partitions([topic]).get(topic)
        if numbers is None:
            raise OttlaError(f"the store '{name}' of application '{self._application_id}' is not there: has it run?")
        partitions = [TopicPartition(topic, number) for number in numbers]
        ends = {partition: end.offset for partition, end in self._reader.ends(partitions).items()}
        state = self._states.setdefault(name, TaskState({name: MemoryBytes()}))
        if any(end < state.positions.get(partition, 0) for partition, end in ends.items()):
            state = self._states[name] = TaskState({name: MemoryBytes()})  # the topic was made anew
        try:
            for _, key, value, time_ms in read_records(self._reader, state, ends):
                if key is not None:
                    apply_record(spec, state.stores[name], key, value, time_ms)
        except BaseException:
            del self._states[name]  # half of it may have been read
            raise
        return state

    def _topic(self, name: str) -> str:
        """Of a global table the topic itself."""
        if name in self._topology.global_stores:
            node = self._topology.nodes[self._topology.global_stores[name]]
            assert isinstance(node, SourceNode)
            return node.topics[0]
        return changelog_topic(self._application_id, name)


class ReadOnlyStore:
    """`get range all fetch ...` of a store, each of them a look at it as it is now."""

    def __init__(self, reader: StoreReader, name: str) -> None:
        self._reader = reader
        self.name = name
        # Of the last look.
        self.as_of_ms = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _READS:
            raise AttributeError(f"a store is only read from outside: {', '.join(_READS)}, not {name}")

        def look(*arguments: Any, **named: Any) -> Any:
            found, self.as_of_ms = self._reader.look(self.name, lambda store: _ask(store, name, arguments, named))
            return found

        return look


def _ask(store: Any, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    if not hasattr(store, name):
        raise OttlaError(f"the store '{store.name}' is of the kind '{store.spec.kind.value}', which has no `{name}`.")
    found = getattr(store, name)(*arguments, **named)
    return found if not hasattr(found, "__next__") else iter(list(found))
