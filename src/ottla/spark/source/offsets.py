"""Offsets as they stand in Spark's checkpoint: `{"orders": {"0": 23}}`, the form of Spark's Kafka integration.

Spark compares their text to see whether there is something new, so the order of topics and partitions is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.common.ids import TopicPartition
from ottla.spark.source.positions import Offsets


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for one in sorted(offsets):
        found.setdefault(one.topic, {})[str(one.partition)] = offsets[one]
    return found


def from_json(found: Mapping[str, Mapping[str, Any]] | None) -> Offsets:
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, row in (found or {}).items()
        for number, offset in row.items()
    }


def limited(starts: Offsets, ends: Offsets, most: int) -> Offsets:
    """Ends at most `most` records after the starts; each partition has its share of what there is, as in Spark."""
    sizes = {one: max(0, end - starts[one]) for one, end in ends.items()}
    total = sum(sizes.values())
    if total <= most:
        return ends
    found: Offsets = {}
    for one, end in ends.items():
        share = most * sizes[one] / total
        # At least one record, or a small partition next to large ones would never move.
        step = int(share) if share >= 1 else -(-sizes[one] // total)
        found[one] = min(end, starts[one] + step) if sizes[one] else end
    return found
