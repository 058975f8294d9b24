"""`TopologyTestDriver`: a topology in this process, without Spark and without a broker.

    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.input_topic("lines", value=serdes.string)
        lines.pipe("to be or not to be", timestamp=0)
        driver.output_topic("counts", key=serdes.string, value=serdes.integer).read_all()

Each record is processed to its end, also through topics of the application, before the next one. Every topic has one
partition. The wall clock stands still until it is told to go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from ottla.common.errors import OttlaError
from ottla.streams import serdes
from ottla.streams.errors import DEFAULT_HANDLING, ErrorHandling
from ottla.streams.processing.task import StreamTask
from ottla.streams.record import NO_HEADERS, Headers, Record
from ottla.streams.serdes import Serde
from ottla.streams.state.bytes_store import MemoryBytes
from ottla.streams.topology import Topology
from ottla.streams.windows import Duration, to_ms

# Windows that are too old take room until so many records later.
_RECORDS_BETWEEN_CLEANING = 1000


class _Bytes(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


class TopologyTestDriver:
    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str = "test",
        handling: ErrorHandling = DEFAULT_HANDLING,
        wall_clock_ms: int = 0,
    ) -> None:
        self._topology = topology
        self._wall_clock_ms = wall_clock_ms
        self._stores = {name: spec.open(MemoryBytes(), application_id) for name, spec in topology.stores.items()}
        self._outputs: dict[str, deque[_Bytes]] = {}
        self._waiting: dict[str, deque[_Bytes]] = {}
        self._offsets: dict[str, int] = {}
        self._tasks: list[StreamTask] = []
        self._by_topic: dict[str, StreamTask] = {}
        self._count = 0
        for sub in topology.sub_topologies():
            task = StreamTask(
                topology,
                sub,
                0,
                application_id=application_id,
                stores=self._stores,
                emit=self._emit,
                handling=handling,
                wall_clock_ms=wall_clock_ms,
            )
            self._tasks.append(task)
            for source in sub.sources:
                node: Any = topology.nodes[source]
                for topic in node.topics:
                    self._by_topic[topology.real_name(application_id, topic)] = task
        self._waits = any(task.waits for task in self._tasks)
        self._internal = {topology.real_name(application_id, topic) for topic in topology.internal_topics}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        for task in self._tasks:
            task.close()

    # --- records in and out

    def input_topic(
        self,
        topic: str,
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        start_ms: int = 0,
        advance_ms: int = 0,
    ) -> InputTopic:
        """Serdes are those of the source unless others are named. Records without a time get `start_ms`, and
        `advance_ms` more each."""
        node = next((node for node in self._topology.sources() if topic in node.topics), None)
        if node is None:
            known = ", ".join(self._topology.source_topics())
            raise OttlaError(f"this topology does not read the topic '{topic}': it reads {known}.")
        return InputTopic(self, topic, key or node.key_serde, value or node.value_serde, start_ms, advance_ms)

    def output_topic(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> OutputTopic:
        """Serdes are those of the sink unless others are named."""
        node = next((node for node in self._topology.sinks() if node.topic == topic), None)
        default: Serde = serdes.raw
        return OutputTopic(
            self._outputs.setdefault(topic, deque()),
            topic,
            key or (node.key_serde if node else default),
            value or (node.value_serde if node else default),
        )

    def pipe_bytes(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = NO_HEADERS
    ) -> None:
        self._process(topic, key, value, timestamp, headers)
        if self._waiting:
            self._drain()
        while self._waits and any(task.flush() for task in self._tasks):
            self._drain()
        self._count += 1
        if self._count % _RECORDS_BETWEEN_CLEANING == 0:
            for task in self._tasks:
                task.forget_old()

    def _process(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        self._by_topic[topic].process(topic, offset, key, value, timestamp, headers)

    def _emit(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        record = _Bytes(key, value, timestamp, headers)
        known = self._outputs.get(topic)
        if known is None:
            known = self._outputs[topic] = deque()
        known.append(record)
        if topic in self._by_topic:
            self._waiting.setdefault(topic, deque()).append(record)

    def _drain(self) -> None:
        """What was written to topics that the topology reads; of several the earliest record first."""
        waiting = self._waiting
        while waiting:
            topic = (
                min(waiting, key=lambda each: waiting[each][0].timestamp) if len(waiting) > 1 else next(iter(waiting))
            )
            queue = waiting[topic]
            record = queue.popleft()
            if not queue:
                del waiting[topic]
            if topic in self._internal:
                self._outputs[topic].popleft()  # nobody else reads it
            self._process(topic, *record)

    # --- time and state

    def advance_wall_clock(self, duration: Duration) -> None:
        """Timers that are due run."""
        self._wall_clock_ms += to_ms(duration, "the time to advance")
        for task in self._tasks:
            task.punctuate_wall_clock(self._wall_clock_ms)
        self._drain()

    @property
    def wall_clock_ms(self) -> int:
        return self._wall_clock_ms

    def store(self, name: str) -> Any:
        if name not in self._stores:
            raise OttlaError(f"there is no store '{name}': there are {', '.join(self._stores) or 'none'}.")
        return self._stores[name]

    @property
    def dropped(self) -> dict[str, int]:
        """Why records were dropped, and how many."""
        found: dict[str, int] = {}
        for task in self._tasks:
            for why, count in task.context.dropped.items():
                found[why] = found.get(why, 0) + count
        return found


class InputTopic:
    def __init__(
        self, driver: TopologyTestDriver, topic: str, key: Serde, value: Serde, start_ms: int, advance_ms: int
    ) -> None:
        self._driver = driver
        self._topic = topic
        self._key = serdes.writer(key, topic)
        self._value = serdes.writer(value, topic)
        self._next_ms = start_ms
        self._advance_ms = advance_ms

    def pipe(
        self, value: Any = None, *, key: Any = None, timestamp: int | None = None, headers: Headers = NO_HEADERS
    ) -> None:
        if timestamp is None:
            timestamp = self._next_ms
            self._next_ms += self._advance_ms
        self._driver.pipe_bytes(self._topic, self._key(key), self._value(value), timestamp, headers)

    def pipe_all(self, records: Iterable[tuple[Any, Any, int]]) -> None:
        """Of (key, value, timestamp)."""
        for key, value, timestamp in records:
            self.pipe(value, key=key, timestamp=timestamp)


class OutputTopic:
    def __init__(self, records: deque[_Bytes], topic: str, key: Serde, value: Serde) -> None:
        self._records = records
        self._topic = topic
        self._key = serdes.reader(key, topic)
        self._value = serdes.reader(value, topic)

    def __len__(self) -> int:
        return len(self._records)

    def is_empty(self) -> bool:
        return not self._records

    def read(self) -> Record:
        """The next one. Raises OttlaError when there is none."""
        if not self._records:
            raise OttlaError(f"there is no more record in the topic '{self._topic}'.")
        key, value, timestamp, headers = self._records.popleft()
        return Record(self._key(key), self._value(value), timestamp, headers)

    def read_all(self) -> list[Record]:
        return [self.read() for _ in range(len(self._records))]

    def read_values(self) -> list[Any]:
        return [record.value for record in self.read_all()]

    def read_table(self) -> dict[Any, Any]:
        """The last value of each key; deleted ones are not in it."""
        found: dict[Any, Any] = {}
        for record in self.read_all():
            if record.value is None:
                found.pop(record.key, None)
            else:
                found[record.key] = record.value
        return found
