"""What flows through a topology: records, and what is known of the record that is being processed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
NO_HEADERS: Headers = ()
# Of a task that has seen no record yet.
NO_TIMESTAMP = -1


@dataclass(frozen=True)
class Record:
    """As a `Processor` gets and forwards it."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = field(default=NO_HEADERS)

    def with_key(self, key: Any) -> Record:
        return replace(self, key=key)

    def with_value(self, value: Any) -> Record:
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Record:
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Record:
        return replace(self, headers=headers)


class RecordMetadata(NamedTuple):
    """Where the record comes from that led to what is being processed."""

    topic: str
    partition: int
    offset: int


class Change(NamedTuple):
    """What flows between tables: the value of a key now, and the one before if somebody downstream needs it."""

    new: Any
    old: Any
    # False for a change of a versioned table that comes after a later one of the same key.
    is_latest: bool = True


def latest(new: Any, old: Any) -> Change:
    """`Change(new, old)` in half the time: tables make one for every record."""
    return _new_tuple(Change, (new, old, True))


_new_tuple = tuple.__new__


class ValueAndTimestamp(NamedTuple):
    value: Any
    timestamp: int
