"""What rounds need of the worker they run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ottla.client.settings import ClientSettings
from ottla.connect.api.plugins import TASKS_MAX
from ottla.connect.storage.compacted import CompactedTopic
from ottla.connect.storage.offsets import OffsetState, Pair

T = TypeVar("T")


@dataclass(frozen=True)
class RoundSettings:
    """The worker's own settings, `ottla.round.*`."""

    bytes_max: int = 64 * 1024 * 1024
    seconds_max: float = 5.0
    # Between two rounds that found nothing.
    idle_s_max: float = 0.5


@dataclass(frozen=True)
class WorkerContext:
    # The session of now: another one, once its JVM was lost.
    session: Callable[[], Any]
    client: ClientSettings
    cluster_group: str
    offsets_topic: CompactedTopic
    offsets: OffsetState
    # Beside transactions, for what is no position of a source: read back when it returns.
    write_offsets: Callable[[Sequence[Pair]], None]
    rounds: RoundSettings
    creates_topics: bool


@dataclass(frozen=True)
class Progress:
    """What a round has done; without tasks, what it finds when it begins."""

    seconds: float
    # Of each task, by the names that `worker/metrics.py` knows.
    tasks: Sequence[Mapping[str, int]]
    # Of the partition of a sink that is furthest behind.
    lag_max: int | None = None


def _unheard(progress: Progress) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True)
class ConnectorContext:
    """One connector's, with settings of the worker that it has not set itself filled in."""

    worker: WorkerContext
    name: str
    config: Mapping[str, str]
    # Topics that it writes to or reads.
    on_topics: Callable[[Sequence[str]], None]
    # A text without the secrets that are in the configuration: states and logs are read by others.
    hidden: Callable[[str], str] = str
    on_progress: Callable[[Progress], None] = _unheard

    @property
    def tasks_max(self) -> int:
        """Of a configuration that another kind of worker has written, too."""
        return min(int(self.config.get("tasks.max", "1")), TASKS_MAX)

    @property
    def job_group(self) -> str:
        return f"connect-{self.name}"

    def job(self, function: Callable[[Any], T], inputs: Sequence[Any]) -> list[T]:
        """Each input in a Spark task of its own."""
        context = self.worker.session().sparkContext
        context.setJobGroup(self.job_group, f"connector {self.name}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self.job_group)
        found: list[T] = context.parallelize(list(inputs), len(inputs)).map(function).collect()
        return found

    def cancel(self) -> None:
        self.worker.session().sparkContext.cancelJobGroup(self.job_group)


def sliced(items: Sequence[T], most: int) -> list[list[T]]:
    """In turn, so that neighbours are in different slices."""
    count = max(1, min(most, len(items)))
    return [list(items[number::count]) for number in range(count)]
