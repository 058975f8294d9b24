"""What a classic consumer says in its JoinGroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.protocol import codec
from ottla.protocol.messages import ConsumerProtocolSubscription


def write_subscription(
    topics: Sequence[str], *, owned: Mapping[str, Sequence[int]] | None = None, version: int = 1
) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in (owned or {}).items()
        ],
    )
    return version.to_bytes(2, "big") + bytes(codec.encode(message, version))
