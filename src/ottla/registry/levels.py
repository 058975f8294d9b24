"""The seven levels of compatibility: which earlier versions a new one is compared with, and which side reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.common.schemas import NEW_READS_OLD, OLD_READS_NEW
from ottla.registry.parsed import Parsed

LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)


class Earlier(NamedTuple):
    """A version that a new one has to get along with."""

    version: int
    type: str
    text: str
    parsed: Parsed


def compared_with(level: str, versions: Sequence[int]) -> list[int]:
    """Of all versions in their order, those that this level looks at, latest first."""
    if level == "NONE" or not versions:
        return []
    return list(reversed(versions)) if level.endswith("_TRANSITIVE") else [versions[-1]]


def check(level: str, kind: str, new: Parsed, earlier: Sequence[Earlier]) -> list[str]:
    """Why the new schema does not fit; empty if it does. Ends at the first version that it does not fit."""
    for old in earlier:
        if old.type != kind:
            found = [f"{{errorType:'TYPE_CHANGED', description:'The schema type changed from {old.type} to {kind}'}}"]
        else:
            found = _check_one(level, new, old.parsed)
        if found:
            return [
                *found,
                f"{{oldSchemaVersion: {old.version}}}",
                f"{{oldSchema: '{old.text}'}}",
                f"{{validateFields: 'false', compatibility: '{level}'}}",
            ]
    return []


def _check_one(level: str, new: Parsed, old: Parsed) -> list[str]:
    found = []
    if level.startswith(("BACKWARD", "FULL")):
        found += new.reads(old, NEW_READS_OLD)
    if level.startswith(("FORWARD", "FULL")):
        found += old.reads(new, OLD_READS_NEW)
    return list(dict.fromkeys(difference.message() for difference in found))
