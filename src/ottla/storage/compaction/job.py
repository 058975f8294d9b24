"""What the broker asks of the worker and what comes back: plain values that travel as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

# Why a job failed: the log is damaged; its files went away; the disk refused; anything else.
DAMAGED, GONE, DISK, UNEXPECTED = "damaged", "gone", "disk", "unexpected"


class SourceSegment(NamedTuple):
    base_offset: int
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """One round over one log.

    `groups` are all segments below `upper_offset` in order; what is left of a group becomes one segment. The map covers
    offsets from `first_dirty_offset` on, as far as its memory reaches.
    """

    directory: str
    groups: list[list[SourceSegment]]
    first_dirty_offset: int
    upper_offset: int
    # Tombstones whose horizon is at or before `now_ms` go; new ones get `new_horizon_ms`.
    now_ms: int
    new_horizon_ms: int
    index_interval_bytes: int
    map_bytes_max: int
    bytes_per_second: float | None = None
    # (producer id, first offset, last offset, last stable offset) as in the transaction index.
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    # (producer id, last data offset or -1, epoch) of the producers that may still go on.
    producers: list[tuple[int, int, int]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        # Not `asdict`: that would copy every segment and producer, on the broker's loop.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> CompactionJob:
        groups = [[SourceSegment(*row) for row in group] for group in values["groups"]]
        return cls(**{**values, "groups": groups})


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The segments with these base offsets became one of `size` bytes, in `.cleaned` files under the first of them.

    Without `differs` there are no files: the group is one segment, and it stays as it is.
    """

    base_offsets: list[int]
    size: int
    differs: bool


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The log is clean below `end_offset`."""

    end_offset: int
    keys: int
    bytes_read: int
    bytes_written: int
    records_removed: int
    batches_unreadable: int
