"""Where a query is, as it stands in Spark's checkpoint.

    {"orders": {"0": 23, "1": 7, "id": "Xo3kvJm2QyKJ0t2nT5kQ3A", "epochs": {"0": 4}}}

That is the form of Spark's Kafka integration and, beside the offsets, which topic has them: its id, and for partitions
the epoch of the leader that said that this offset was reached. What has neither, such as a checkpoint of that
integration, is read all the same. Spark compares the text to see whether there is something new, so the order is fixed,
and a topic in which nothing moved stays as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.common.ids import TopicId, TopicPartition, topic_id_from_text, topic_id_text
from ottla.spark.source.positions import Offsets

JsonOffsets = dict[str, dict[str, Any]]
_ID, _EPOCHS = "id", "epochs"


@dataclass(frozen=True)
class SourceOffset:
    offsets: Offsets = field(default_factory=dict)
    topic_ids: dict[str, TopicId] = field(default_factory=dict)
    epochs: Offsets = field(default_factory=dict)

    def replaced_by(self, other: SourceOffset) -> set[str]:
        """Topics that are known to be others under the same names."""
        return {topic for topic, topic_id in self.topic_ids.items() if other.topic_ids.get(topic, topic_id) != topic_id}

    def moved_to(self, offsets: Offsets, seen: SourceOffset) -> SourceOffset:
        """These offsets, with ids and epochs as they were seen for what moved, and as they were before for the rest."""
        replaced = self.replaced_by(seen)
        moved = {
            partition
            for partition, offset in offsets.items()
            if self.offsets.get(partition) != offset or partition.topic in replaced
        }
        moved_topics = {partition.topic for partition in moved}
        ids: dict[str, TopicId] = {}
        for topic in {partition.topic for partition in offsets}:
            known = (seen if topic in moved_topics else self).topic_ids
            if topic in known:
                ids[topic] = known[topic]
        epochs = {partition: (seen if partition in moved else self).epochs.get(partition, -1) for partition in offsets}
        return SourceOffset(offsets, ids, {partition: epoch for partition, epoch in epochs.items() if epoch >= 0})


def to_json(offset: SourceOffset) -> JsonOffsets:
    found: JsonOffsets = {}
    for partition in sorted(offset.offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offset.offsets[partition]
    for topic in found:
        if topic in offset.topic_ids:
            found[topic][_ID] = topic_id_text(offset.topic_ids[topic])
    for partition in sorted(offset.epochs):
        found[partition.topic].setdefault(_EPOCHS, {})[str(partition.partition)] = offset.epochs[partition]
    return found


def from_json(found: Mapping[str, Mapping[str, Any]] | None) -> SourceOffset:
    offset = SourceOffset()
    for topic, row in (found or {}).items():
        for name, value in row.items():
            if name == _ID:
                offset.topic_ids[topic] = topic_id_from_text(value)
            elif name == _EPOCHS:
                offset.epochs.update({TopicPartition(topic, int(number)): int(value[number]) for number in value})
            else:
                offset.offsets[TopicPartition(topic, int(name))] = int(value)
    return offset


def limited(starts: Offsets, ends: Offsets, most: int) -> Offsets:
    """Ends at most `most` records after the starts; each partition has its share of what there is, as in Spark."""
    sizes = {partition: max(0, end - starts[partition]) for partition, end in ends.items()}
    total = sum(sizes.values())
    if total <= most:
        return ends
    found: Offsets = {}
    for partition, end in ends.items():
        share = most * sizes[partition] / total
        # At least one record, or a small partition next to large ones would never move.
        step = int(share) if share >= 1 else -(-sizes[partition] // total)
        found[partition] = min(end, starts[partition] + step) if sizes[partition] else end
    return found
