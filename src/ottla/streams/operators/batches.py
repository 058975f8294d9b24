"""`map_batches`: a function that gets many records at once, for what is cheaper so: a model, a vectorised sum, a
look-up in another system. Records wait until there are enough of them, or until the task has no more for now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.common.errors import OttlaError
from ottla.streams import errors
from ottla.streams.errors import BatchFailed
from ottla.streams.processing.context import TaskContext
from ottla.streams.processing.operator import Operator
from ottla.streams.record import Headers, RecordMetadata


class Batch(NamedTuple):
    """Columns of equal length."""

    keys: Sequence[Any]
    values: Sequence[Any]
    timestamps: Sequence[int]


BatchFunction = Callable[[Batch], Any]
_Waiting = tuple[Any, Any, int, Headers, RecordMetadata | None]


class MapBatches(Operator):
    def __init__(self, function: BatchFunction, size: int) -> None:
        self._function = function
        self._size = size
        self._waiting: list[_Waiting] = []

    def init(self, context: TaskContext) -> None:
        self._context = context

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self._waiting.append((key, value, timestamp, headers, self._context.metadata))
        if len(self._waiting) >= self._size:
            self.flush()

    def flush(self) -> bool:
        """Whether there was anything."""
        if not self._waiting:
            return False
        waiting, self._waiting = self._waiting, []
        try:
            made = self._made(waiting)
        except MemoryError:
            raise
        except Exception as error:
            raise BatchFailed(f"{errors.failed(self._culprit(waiting), error)}.") from error
        current = self._context.metadata
        for key, value, timestamp, headers, metadata in made:
            self._context.metadata = metadata
            self.forward(key, value, timestamp, headers)
        self._context.metadata = current
        return True

    def _made(self, waiting: list[_Waiting]) -> list[_Waiting]:
        keys, values, times, headers, metadata = map(list, zip(*waiting, strict=True))
        found = self._function(Batch(keys, values, times))
        if isinstance(found, Batch):
            if len({len(found.keys), len(found.values), len(found.timestamps)}) > 1:
                raise OttlaError("the function of `map_batches` gave columns of different lengths")
            rows = zip(*found, strict=True)
            return [(key, value, int(time_ms), (), metadata[-1]) for key, value, time_ms in rows]
        if len(found) != len(waiting):
            raise OttlaError(f"the function of `map_batches` gave {len(found)} values for {len(waiting)} records")
        return list(zip(keys, found, times, headers, metadata, strict=True))

    def _culprit(self, waiting: list[_Waiting]) -> RecordMetadata | None:
        """The record that fails by itself; if none does, the first."""
        for one in waiting:
            try:
                self._made([one])
            except Exception:
                return one[4]
        return waiting[0][4]
