"""The manifest: what a batch sees besides the records of its streams, written down before it runs.

Spark's own log has up to where a batch reads its streams. The rest of what its rows depend on is here: up to where each
table was read, and how many partitions the topics have that are written to. A batch that runs again takes both from
the checkpoint and sees what it saw the first time, whatever has happened to the cluster since.

A manifest holds from its batch on, until there is another one: while nothing changes, nothing is written. It is written
before Spark's log has its batch (what it says of partitions: before the batch has rows), and not changed after that.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from ottla.common.errors import OttlaError
from ottla.spark.sink.checkpoint import Checkpoint

_FOLDER = "ottla/manifests"
_VERSION = 1
# Spark runs no batch again but the last one; the others are for people.
_KEPT = 20

# By partition.
Ends = dict[str, int]


@dataclass(frozen=True)
class TableEnd:
    """Up to where a table's topic is read."""

    topic_id: str
    ends: Ends


@dataclass(frozen=True)
class Manifest:
    # Of the topics that are written to, as far as they are known before there are rows.
    partition_counts: dict[str, int] = field(default_factory=dict)
    tables: dict[str, TableEnd] = field(default_factory=dict)
    # Those of them that came to the pipeline when the batch had run already: if it was published, then without the bad
    # records that it covers of them. The batch after it has these.
    late: list[str] = field(default_factory=list)

    @property
    def covered(self) -> dict[str, TableEnd]:
        """Tables up to where bad records are those of this batch, or of one before."""
        return {topic: end for topic, end in self.tables.items() if topic not in self.late}

    def to_json(self) -> str:
        return json.dumps({"version": _VERSION, **asdict(self)}, separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Raises ValueError."""
        try:
            found = json.loads(text)
            if found["version"] != _VERSION:
                raise ValueError(f"version {found['version']}")
            return Manifest(
                dict(found["partition_counts"]),
                {name: TableEnd(**table) for name, table in found["tables"].items()},
                list(found.get("late", ())),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from None


class Manifests:
    """Those of one checkpoint. Only the query that runs on it writes them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._numbers = sorted(checkpoint.numbers(_FOLDER))
        self._known: dict[int, Manifest] = {}

    def number_for(self, batch: int) -> int | None:
        """Of which batch the manifest is that holds for this one."""
        return max((number for number in self._numbers if number <= batch), default=None)

    def holding(self, batch: int) -> Manifest:
        number = self.number_for(batch)
        return Manifest() if number is None else self._read(number)

    def write(self, batch: int, manifest: Manifest) -> None:
        """From this batch on. The caller has made sure that the batch does not run yet."""
        if self.holding(batch) == manifest:
            return
        self._checkpoint.write(f"{_FOLDER}/{batch}", manifest.to_json())
        self._known[batch] = manifest
        self._numbers = sorted({*self._numbers, batch})
        for old in self._numbers[:-_KEPT]:
            self._checkpoint.remove(f"{_FOLDER}/{old}")
            self._known.pop(old, None)
        self._numbers = self._numbers[-_KEPT:]

    def _read(self, number: int) -> Manifest:
        if number not in self._known:
            text = self._checkpoint.read(f"{_FOLDER}/{number}")
            try:
                self._known[number] = Manifest.from_json(text)
            except ValueError as error:
                raise OttlaError(
                    f"the manifest {self._checkpoint.location}/{_FOLDER}/{number} cannot be read ({error}): it is "
                    "damaged, or of a later version of Ottla."
                ) from None
        return self._known[number]
