"""What the worker does with a source: read from the last published offset, publish records and offset together, tell
the source. And it may die at any point in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.connect.api import Offset, Outage, Read, Records, Source


@dataclass(frozen=True)
class Published:
    topic: str
    key: Any
    value: Any


def rows(records: Records) -> list[Published]:
    def values(data: Any) -> list[Any]:
        return data if isinstance(data, list) else data.to_pylist()

    return [
        Published(*each)
        for each in zip(records.topics.to_pylist(), values(records.keys.data), values(records.values.data), strict=True)
    ]


@dataclass
class Driven:
    """`topics` and `offset` are what Kafka has; everything else is lost when the worker dies."""

    make: Callable[[], Source]
    offset: Offset | None = None
    topics: list[Published] = field(default_factory=list)
    batches: list[Records] = field(default_factory=list)
    source: Source | None = None

    def __post_init__(self) -> None:
        self.partition: Mapping[str, Any] = {}

    def pieces(self) -> Iterator[Read]:
        if self.source is None:
            self.source = self.make()
        (self.partition,) = self.source.partitions(1)
        return self.source.read(self.partition, self.offset)

    def publish(self, piece: Read) -> None:
        """In one transaction."""
        self.topics.extend(rows(piece.records))
        self.batches.append(piece.records)
        self.offset = json.loads(json.dumps(piece.offset))
        # The worker compares what it has with what came back.
        assert self.offset == piece.offset

    def tell(self) -> None:
        assert self.source is not None
        if self.offset is not None:
            self.source.published(self.partition, self.offset)

    def round(self) -> int:
        """Everything there is for now. How many records that was."""
        before = len(self.topics)
        for piece in self.pieces():
            self.publish(piece)
        self.tell()
        return len(self.topics) - before

    def round_of_one_piece(self) -> bool:
        """Whether there was one."""
        for piece in self.pieces():
            self.publish(piece)
            self.tell()
            return True
        return False

    def until(self, done: Callable[[], bool], rounds: int = 200) -> None:
        for _ in range(rounds):
            try:
                self.round()
            except Outage:
                continue
            if done():
                return
        raise AssertionError("it did not come")

    def die(self) -> None:
        """As the process would: connections break, nothing is said."""
        if self.source is not None:
            source, self.source = self.source, None
            source.close()

    def of(self, topic: str) -> list[Published]:
        return [each for each in self.topics if each.topic == topic]
