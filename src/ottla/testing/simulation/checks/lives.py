"""One topic is deleted and made again under its name. Each of its lives is another topic to the checks."""

from __future__ import annotations

from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition

FLEETING = "fleeting"
_SEPARATOR = "~"


def life_of(partition: TopicPartition, topic_id: TopicId) -> TopicPartition | None:
    """As the checks call it; None where nobody knows which life it is of."""
    if partition.topic != FLEETING:
        return partition
    if topic_id == ZERO_TOPIC_ID:
        return None
    return TopicPartition(f"{FLEETING}{_SEPARATOR}{topic_id.hex()}", partition.partition)


def as_brokers_call_it(partition: TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic.partition(_SEPARATOR)[0], partition.partition)
