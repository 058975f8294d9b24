"""The two classes that a connector derives from.

A connector has no loop of its own. The worker asks a source what there is to read, reads each partition in a Spark task
from the offset that was published last, and publishes records and offsets in one transaction. A sink gets records of
topic partitions in a Spark task, in order, and the worker commits their offsets when they are written. An instance is
made from its configuration wherever it is needed (the driver, each task) and must not open anything before it is asked
to work.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.connect.api.config import ConfigDef, ConfigValue
from ottla.connect.api.data import Records

# JSON objects, as `GET /connectors/{name}/offsets` shows them.
Partition = Mapping[str, Any]
Offset = Mapping[str, Any]
# Each task is named in two topics, and planned by the worker: some millions would take the memory of all connectors.
TASKS_MAX = 10_000


class ConnectorFailure(OttlaError):
    """Trying again does not help: the connector is FAILED with this sentence until somebody changes something."""


class Outage(OttlaError):
    """The other side is not there for now (refused, timed out, restarting). Never the fault of a record."""


class BadRecords(OttlaError):
    """The target does not take these records. The worker halves them until the bad one is alone."""


@dataclass(frozen=True)
class Read:
    """Some records of a partition, and where to go on after them."""

    records: Records
    offset: Offset
    # What could not be read and is passed over, a sentence for each: with errors.tolerance=all only.
    failures: Sequence[str] = ()


class Connector(ABC):
    """What sources and sinks have in common."""

    version: ClassVar[str] = "1.0"
    config_def: ClassVar[ConfigDef]
    # Kafka Connect's class names and others under which configurations know it.
    aliases: ClassVar[Sequence[str]] = ()

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raises ConfigInvalid."""
        self.settings = self.config_def.parse(config)

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValue]:
        """May look at several settings together; must not reach out to anything."""
        return cls.config_def.validate(config)


class Source(Connector):
    # Read in the driver instead of in Spark's tasks: one stream that stays connected, as change data capture is.
    reads_on_driver: ClassVar[bool] = False

    @abstractmethod
    def partitions(self, most: int) -> Sequence[Partition]:
        """On the driver, before each round: what can be read side by side; `most` is tasks.max, more are read in turn.
        The same thing has the same partition each time: offsets are kept by it."""

    def has_more(self, partition: Partition, offset: Offset | None) -> bool:
        """On the driver, after `partitions`: False saves a task that would find nothing. Who cannot tell says True."""
        return True

    @abstractmethod
    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        """In a task: what comes after this offset (None: from the start), in order, in pieces of some megabytes. It
        ends when there is nothing more for now; the worker may close it after any piece, and reads on from there."""

    def published(self, partition: Partition, offset: Offset) -> None:
        """On the driver: everything up to this offset is in the topics, for good. A log may be let go."""

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        """What is wrong with an offset that a person has given for a connector that is STOPPED, or None. It must not
        reach out to anything."""
        return None

    def close(self) -> None:
        """On the driver: the connector stops."""


def check_numbers(offset: Mapping[str, Any], *names: str) -> str | None:
    """What is wrong with the first of these that is there and is no whole number of at least 0."""
    for name in names:
        value = offset.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            return f"'{name}' must be a whole number of at least 0, and is {json.dumps(value)}"
    return None


@dataclass(frozen=True)
class Batching:
    """How much a sink wants at once: the worker waits until there are so many bytes or records, or the oldest has
    waited so long by the wall clock. That is how files get their size."""

    bytes: int = 0
    records: int = 0
    interval_ms: int = 0


class SinkWriter(ABC):
    @abstractmethod
    def write(self, records: Records) -> None:
        """Records of one topic partition, in order: all of them or none. Raises Outage or BadRecords."""

    @abstractmethod
    def close(self) -> None: ...


class Sink(Connector):
    # The target says itself how far it was written (`positions`), so that no record is written twice.
    is_exactly_once: ClassVar[bool] = False

    def batching(self) -> Batching:
        return Batching()

    def begin(self, topics: Sequence[str]) -> None:
        """On the driver, once at the start: look at the target, as far as it can be looked at before records come."""

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """On the driver, when the connector starts and after a round that failed: the next offset that the target
        needs, of partitions that it knows of. Where it knows nothing, the offset of the consumer group counts."""
        return {}

    @abstractmethod
    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        """In a task: records of this partition come next, from `position` on. Another task may have been given the same
        records before, and be dead or only slow: a sink that is exactly once refuses it when it comes back."""

    def moved(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """On the driver: somebody has set the offsets of the stopped connector (None: from the start). A target that
        keeps positions forgets its own."""
