"""What the brokers are to a decision, taken from the image once for all partitions.

- live: present and taken in. Only these are in sync and lead.
- stopping: live, on its way out (controlled shutdown): in sync and leading only where nobody else is.
- renewed: live by a registration that this change takes in. What it was by the one before does not count: it is in
  sync nowhere, but leads where it is eligible.
- missing: replicas that a renewed broker does not have any more, because their log directory is gone (KIP-858).
- lost: its machine went down with records that may not have been synced: eligible nowhere. It stays so until it is
  taken in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.common.ids import TopicId
from ottla.metadata.image import ClusterImage, Registration

_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Standing:
    live: frozenset[int]
    stopping: frozenset[int] = frozenset()
    renewed: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    # By broker, each with the numbers of its partitions by topic.
    missing: Mapping[int, Mapping[TopicId, frozenset[int]]] = field(default_factory=dict)

    def missing_from(self, topic: TopicId, index: int) -> frozenset[int]:
        """The brokers that do not have this partition any more."""
        if not self.missing:
            return _NOBODY
        return frozenset(broker for broker, known in self.missing.items() if index in known.get(topic, ()))


def standing(image: ClusterImage, changed: Mapping[int, Registration] | None = None) -> Standing:
    """`changed` are registrations that are written together with what is decided. A single node has none at all: it
    is live because the image has it."""
    changed = changed or {}
    renewed = {broker for broker, registration in changed.items() if registration.is_active} - image.brokers.keys()
    gone = {broker for broker, registration in changed.items() if not registration.is_active}
    registrations = {**image.registrations, **changed}
    return Standing(
        live=frozenset((image.brokers.keys() | renewed) - gone),
        stopping=frozenset(broker for broker, known in registrations.items() if known.is_stopping),
        renewed=frozenset(renewed),
        lost=frozenset(
            broker
            for broker, known in image.registrations.items()
            if known.may_have_lost_records and not known.is_active
        ),
        missing={
            broker: {topic: frozenset(indexes) for topic, indexes in image.registrations[broker].missing.items()}
            for broker in sorted(renewed)
            if image.registrations[broker].missing
        },
    )
