"""What an operator does, in the words that Spark has for it: so that a stage of several of them can run on columns."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.streams.serdes import Serde
from ottla.streams.sql.aggregation import Aggregation
from ottla.streams.sql.expressions import KEY
from ottla.streams.sql.schema import Kind


@dataclass(frozen=True)
class Where:
    """Only records for which it holds; NULL holds not."""

    spark: str


@dataclass(frozen=True)
class NewKey:
    spark: str
    kind: Kind


@dataclass(frozen=True)
class NewRow:
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Folded:
    aggregation: Aggregation


@dataclass(frozen=True)
class NativeStep:
    what: Where | NewKey | NewRow | Folded
    # Of the records that come out of it.
    key_serde: Serde
    value_serde: Serde
    # What stands in pictures; empty for what the application adds by itself.
    text: str


def has_key(key: Serde, value: Serde) -> NativeStep:
    return NativeStep(Where(f"({KEY} IS NOT NULL)"), key, value, "")
