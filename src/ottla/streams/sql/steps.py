"""What an operator of SQL does, so that a stage of several of them can run on columns."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.streams.serdes import Serde
from ottla.streams.sql.aggregation import Aggregation
from ottla.streams.sql.expressions import Expression


@dataclass(frozen=True)
class Where:
    """Only records for which it holds, or for which it does not; NULL holds not."""

    condition: Expression
    wanted: bool


@dataclass(frozen=True)
class WithKey:
    """Only records that have one."""


@dataclass(frozen=True)
class NewKey:
    chosen: Expression


@dataclass(frozen=True)
class NewRow:
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Folded:
    aggregation: Aggregation


@dataclass(frozen=True)
class NativeStep:
    what: Where | WithKey | NewKey | NewRow | Folded
    # Of the records that come out of it.
    key_serde: Serde
    value_serde: Serde
    # What stands in pictures; empty for what the application adds by itself.
    text: str


def has_key(key: Serde, value: Serde) -> NativeStep:
    return NativeStep(WithKey(), key, value, "")
