"""Which changes of the stream are already in the rows that a snapshot has read.

A snapshot reads tables in the order of their keys while others go on writing, and the stream of changes begins before
the snapshot does. So the stream brings changes again that the rows already have; those are left out, and every change
of a key comes once and in order. If the snapshot is cut short by a crash, the next run reads on behind the last
published key, at a later moment: a `Part` says which keys were read at which moment. What a moment is, the database
says (`Moment`): PostgreSQL knows which transactions a snapshot sees, MariaDB at which position of the binlog it was
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# A key as it can be compared: integers as such, all else as text in the order of its bytes.
Key = tuple[Any, ...]
# What a Part says of a table: read behind the first key (None: from its beginning) up to the second (None: to its end).
Range = tuple[Key | None, Key | None]


@dataclass
class Part:
    moment: str
    # From this position of the stream on nothing was seen by the moment.
    until: int
    ranges: dict[str, Range] = field(default_factory=dict)

    def has(self, table: str, key: Key | None) -> bool:
        if table not in self.ranges:
            return False
        low, high = self.ranges[table]
        if key is None:
            return True
        return (low is None or key > low) and (high is None or key <= high)

    def to_json(self) -> dict[str, Any]:
        ranges = {table: [_listed(low), _listed(high)] for table, (low, high) in self.ranges.items()}
        return {"moment": self.moment, "until": self.until, "ranges": ranges}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Part:
        ranges = {table: (_key(low), _key(high)) for table, (low, high) in value["ranges"].items()}
        return Part(value["moment"], value["until"], ranges)


def _key(value: Sequence[Any] | None) -> Key | None:
    return None if value is None else tuple(value)


def _listed(key: Key | None) -> list[Any] | None:
    """As JSON has it: an offset must equal what comes back from Kafka."""
    return None if key is None else list(key)


class Covered:
    """All parts of a snapshot. `seen(moment, transaction)` is the database's own rule."""

    def __init__(self, parts: Sequence[Part], seen: Callable[[str, Any], bool]) -> None:
        self.parts = list(parts)
        self._seen = seen
        self._of_transaction: list[Part] = []

    def begin(self, transaction: Any, position: int) -> None:
        """A transaction of the stream begins; it was committed at this position."""
        self.parts = [part for part in self.parts if position < part.until]
        self._of_transaction = [part for part in self.parts if self._seen(part.moment, transaction)]

    def has(self, table: str, key: Key | None) -> bool:
        return any(part.has(table, key) for part in self._of_transaction)

    @property
    def is_over(self) -> bool:
        """No change of this transaction is in a snapshot."""
        return not self._of_transaction
