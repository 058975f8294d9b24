"""What a new topic, or more partitions of one, would be: Kafka's checks, in Kafka's order, as pure functions.

A plan either is the TopicImage to store or raises the ApiError to answer with. Replicas go to brokers round robin;
with one broker that broker leads everything, and a replication factor above one is refused as Kafka refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.metadata.image import NOTHING, ClusterImage, PartitionImage, TopicImage, initial_partition
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


@dataclass(frozen=True, slots=True)
class Placement:
    """What planning needs to know of the cluster besides the image."""

    brokers: Sequence[int]
    default_partitions: int
    default_replication_factor: int


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
        partitions = _placed(0, count, factor, placement)
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
    return tuple(_by_hand(by_index[index], size, placement) for index in range(len(by_index)))


def check_replicas(brokers: Sequence[int], known: Sequence[int]) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless these can be the replicas of one partition."""
    if not brokers:
        raise _bad_assignment("includes an empty replica list.")
    for broker in brokers:
        if brokers.count(broker) > 1:
            raise _bad_assignment(f"includes the broker {broker} more than once.")
        if broker not in known:
            raise _bad_assignment(f"includes broker {broker}, but no such broker is registered.")


def _by_hand(brokers: Sequence[int], size: int, placement: Placement) -> PartitionImage:
    check_replicas(brokers, placement.brokers)
    if len(brokers) != size:
        raise _bad_assignment(
            f"includes a partition with {len(brokers)} replica(s), but this is not consistent with previous "
            f"partitions, which have {size} replica(s)."
        )
    return initial_partition(tuple(brokers))


def _bad_assignment(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {why}")


def _placed(first: int, count: int, factor: int, placement: Placement) -> tuple[PartitionImage, ...]:
    known = len(placement.brokers)
    if factor > known:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {known} broker(s) are registered.",
        )
    # Partitions that start at the same broker are the same value: thousands of them cost one object.
    starts = [
        initial_partition(tuple(placement.brokers[(start + step) % known] for step in range(factor)))
        for start in range(known)
    ]
    return tuple(starts[index % known] for index in range(first, first + count))


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
    factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        new = _placed(before, added, min(factor, len(placement.brokers)), placement)
    else:
        if len(request.assignments) != added:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only {len(request.assignments)} "
                "assignment(s) were specified.",
            )
        new = tuple(_by_hand(brokers, factor, placement) for brokers in request.assignments)
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
