"""What a new topic, or more partitions of one, would be: Kafka's checks, in Kafka's order, as pure functions.

A plan either is the TopicImage to store or raises the ApiError to answer with. Where replicas go is in `placement.py`;
with one broker that broker leads everything, and a replication factor above one is refused as Kafka refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.controller.placement import Placement, by_hand, placed, start_of
from ottla.metadata.image import NOTHING, ClusterImage, PartitionImage, TopicImage
from ottla.metadata.topic_names import collision_key, name_fault

# What Kafka's controller takes in one request; a million would keep the broker busy for minutes.
PARTITIONS_PER_REQUEST_MAX = 10_000
# Every partition costs files and memory, so one broker has an end too.
PARTITIONS_PER_BROKER_MAX = 100_000
USE_DEFAULT = -1
METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    # (partition, brokers) pairs; when given, the two numbers above must be left at the default.
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    topic: str
    total: int
    # Brokers of each added partition, in order; None lets the broker choose.
    assignments: Sequence[Sequence[int]] | None = None


def check_name(name: str, image: ClusterImage, taken: Mapping[str, str]) -> None:
    """`taken` maps collision keys to names, of topics that exist or are being created."""
    if name == METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    other = taken.get(collision_key(name))
    if name in image.topics or name == other:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    fault = name_fault(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if other is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def taken_names(image: ClusterImage) -> dict[str, str]:
    return {collision_key(name): name for name in image.topics}


def plan_topic(topic: NewTopic, topic_id: TopicId, configs: Mapping[str, str], placement: Placement) -> TopicImage:
    """The topic to create; its name and configs have been checked already."""
    if topic.assignments:
        partitions = _assigned(topic, placement)
    else:
        count = placement.default_partitions if topic.partitions == USE_DEFAULT else topic.partitions
        factor = (
            placement.default_replication_factor
            if topic.replication_factor == USE_DEFAULT
            else topic.replication_factor
        )
        if factor < 1:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < 1:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        partitions = placed(count, factor, placement)
    return TopicImage(topic.name, topic_id, partitions, configs or NOTHING)


def _assigned(topic: NewTopic, placement: Placement) -> tuple[PartitionImage, ...]:
    for value, name in ((topic.partitions, "numPartitions"), (topic.replication_factor, "replication factor")):
        if value != USE_DEFAULT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    by_index: dict[int, Sequence[int]] = {}
    for index, brokers in topic.assignments:
        if index in by_index:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        by_index[index] = brokers
    if set(by_index) != set(range(len(by_index))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    size = len(by_index[0])
    return tuple(by_hand(index, by_index[index], size, placement) for index in range(len(by_index)))


def plan_partitions(request: NewPartitions, topic: TopicImage, placement: Placement) -> TopicImage:
    """The topic with more partitions."""
    before = len(topic.partitions)
    if request.total < before:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {before} partition(s); {request.total} would not be an increase.",
        )
    if request.total == before:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {before} partition(s).")
    added = request.total - before
    factor = len(topic.partitions[0].replicas) - len(topic.partitions[0].removing)
    if request.assignments is None:
        # On from where the topic's first partition is, so its leaders stay spread; if that can be told.
        start = start_of(topic.partitions[0].replicas[0], placement)
        new = placed(added, min(factor, len(placement.brokers)), replace(placement, start=start), first=before)
    else:
        if len(request.assignments) != added:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only {len(request.assignments)} "
                "assignment(s) were specified.",
            )
        new = tuple(
            by_hand(before + step, brokers, factor, placement) for step, brokers in enumerate(request.assignments)
        )
    return replace(topic, partitions=topic.partitions + new)


def check_total(added: int, image: ClusterImage) -> None:
    """Refuse before anything is built: a request for a million partitions costs nothing."""
    if added > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {added} are more than {PARTITIONS_PER_REQUEST_MAX}.",
        )
    if image.partition_count + added > PARTITIONS_PER_BROKER_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"This broker has {image.partition_count} partitions; {added} more would pass its limit of "
            f"{PARTITIONS_PER_BROKER_MAX}.",
        )


def requested_partitions(topics: Iterable[NewTopic], placement: Placement) -> int:
    return sum(
        len(topic.assignments)
        or (placement.default_partitions if topic.partitions == USE_DEFAULT else max(topic.partitions, 0))
        for topic in topics
    )
