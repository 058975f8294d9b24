"""The Processor API: code of users that sees one record at a time, has stores, forwards, and sets timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.common.errors import OttlaError
from ottla.streams.processing.context import TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.processing.punctuation import Cancellable, PunctuationType
from ottla.streams.record import Headers, Record, RecordMetadata
from ottla.streams.windows import Duration, to_ms


class Processor:
    """Derive from it. A new one is made for every task, and on Spark for every micro-batch: what must stay is in
    stores, and timers are kept by the task."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """When the task ends."""


class ProcessorContext:
    """What a `Processor` may use."""

    def __init__(self, task: TaskContext, operator: ProcessorOperator) -> None:
        self._task = task
        self._operator = operator

    def forward(self, record: Record, child: str | None = None) -> None:
        """To all nodes below, or to the one of this name."""
        if not isinstance(record, Record):
            raise OttlaError(f"a processor forwards a Record, not {type(record).__name__}.")
        self._operator.forward_record(record, child)

    def store(self, name: str) -> Any:
        if name not in self._operator.store_names:
            known = ", ".join(self._operator.store_names) or "none"
            raise OttlaError(f"processor '{self._operator.name}' has no store '{name}': it is connected to {known}.")
        return self._task.store(name)

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """`callback` gets the time now, in milliseconds, again and again. Only in `init`."""
        if not self._operator.is_starting:
            raise OttlaError(
                f"timers are set in `init`: processor '{self._operator.name}' lives for one batch on Spark, and one "
                "that is set later would be forgotten with it. Keep in a store what is due, and look at it in a timer."
            )
        interval_ms = to_ms(interval, "the interval of a timer", least=1)
        return self._task.schedule(self._operator.name, interval_ms, kind, self._operator.outside_a_record(callback))

    @property
    def record_metadata(self) -> RecordMetadata | None:
        return self._task.metadata

    @property
    def stream_time(self) -> int:
        return self._task.stream_time_ms

    @property
    def system_time(self) -> int:
        return self._task.wall_clock_ms

    @property
    def application_id(self) -> str:
        return self._task.application_id

    @property
    def task_id(self) -> str:
        return self._task.task_id


def check_supplier(supplier: Any) -> None:
    if not callable(supplier):
        raise OttlaError(
            f"`process` takes what makes a Processor for each task, not a {type(supplier).__name__}: its class, or a "
            "function that gives a new one."
        )


class ProcessorOperator(Operator):
    def __init__(self, supplier: Callable[[], Any], name: str, *, keeps_key: bool = False) -> None:
        self._processor = supplier()
        self.name = name
        self._keeps_key = keeps_key
        self._key: Any = None
        self._is_in_record = False
        # Whether its `init` runs: timers of later are not known to the next life of the task.
        self.is_starting = False
        # Set by the task that wires it.
        self.store_names: list[str] = []
        self.children_by_name: dict[str, Operator] = {}

    def init(self, context: TaskContext) -> None:
        self._task = context
        self.is_starting = True
        self._processor.init(ProcessorContext(context, self))
        self.is_starting = False

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if self._keeps_key:
            self._key, self._is_in_record = key, True
            try:
                self._processor.process(Record(key, value, timestamp, headers))
            finally:
                self._is_in_record = False
        else:
            self._processor.process(Record(key, value, timestamp, headers))

    def forward_record(self, record: Record, child: str | None) -> None:
        if record.timestamp < 0:
            raise OttlaError(f"processor '{self.name}' forwards a record with the negative time {record.timestamp}.")
        if self._keeps_key and self._is_in_record and record.key != self._key:
            raise OttlaError(f"'{self.name}' is of `process_values`, which must not change the key: use `process`.")
        if child is None:
            self.forward(record.key, record.value, record.timestamp, record.headers)
        elif child in self.children_by_name:
            self.children_by_name[child].process(record.key, record.value, record.timestamp, record.headers)
        else:
            known = ", ".join(self.children_by_name) or "none"
            raise OttlaError(f"processor '{self.name}' forwards to '{child}', but below it are {known}.")

    def outside_a_record(self, callback: Callable[[int], None]) -> Callable[[int], None]:
        def punctuate(now_ms: int) -> None:
            metadata, self._task.metadata = self._task.metadata, None
            try:
                callback(now_ms)
            finally:
                self._task.metadata = metadata

        return punctuate

    def close(self) -> None:
        self._processor.close()
