"""The protocol that classic consumers speak among themselves, inside JoinGroup metadata and SyncGroup assignments.

The coordinator of a classic group has no business with it, except to learn which topics a group reads (offset
expiry) and to carry a group over to KIP-848 and back. Both structs start with their version; a newer one than we
know is read as the newest we know, because versions only add fields at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

PROTOCOL_TYPE = "consumer"
_NEWEST = 3


class Subscription(NamedTuple):
    version: int
    topics: Sequence[str]
    owned: Sequence[tuple[str, Sequence[int]]]
    rack_id: str | None


def _version_of(data: bytes) -> int:
    if len(data) < 2:
        raise MalformedMessage("an embedded consumer protocol message has no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise MalformedMessage(f"version {version} of the embedded consumer protocol")
    return min(version, _NEWEST)


def read_subscription(data: bytes) -> Subscription:
    """Raises MalformedMessage."""
    version = _version_of(data)
    found: ConsumerProtocolSubscription = codec.decode("ConsumerProtocolSubscription", version, data, 2)
    owned = [(topic.topic, topic.partitions) for topic in found.owned_partitions]
    return Subscription(version, found.topics, owned, found.rack_id or None)


def read_topics(data: bytes) -> Sequence[str]:
    """Only the subscribed topics, read as version 0: the prefix that every version shares. Raises MalformedMessage."""
    _version_of(data)
    found: ConsumerProtocolSubscription = codec.decode("ConsumerProtocolSubscription", 0, data, 2)
    return found.topics


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Raises MalformedMessage."""
    found: ConsumerProtocolAssignment = codec.decode("ConsumerProtocolAssignment", _version_of(data), data, 2)
    return found


def write_assignment(partitions: Mapping[str, Sequence[int]], version: int) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in partitions.items()
        ]
    )
    return version.to_bytes(2, "big") + bytes(codec.encode(message, version))
