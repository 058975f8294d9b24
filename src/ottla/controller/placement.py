"""Which brokers hold the replicas of a new partition.

The brokers stand in a circle that takes turns between racks. Partition after partition the next live broker leads, so
leaders are spread evenly; its other replicas are chosen one by one: on a rack that has the fewest of them so far, there
rather a live broker than one that is away, there the next one in the circle. So replicas of one partition share a rack
only when there are fewer racks than replicas. From round to round followers begin further on, so two brokers do not
share all their partitions. A broker without a rack counts as a rack of its own.

The same `Placement.start` gives the same places. Brokers that are registered and away get replicas too, as Kafka does
it: they are not in the ISR until they have come back and caught up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ottla.common.errors import ApiError, ErrorCode
from ottla.controller.standing import standing
from ottla.metadata.image import ClusterImage, PartitionImage


@dataclass(frozen=True, slots=True)
class Placement:
    """What planning needs to know of the cluster."""

    # All that are registered, live or not.
    brokers: Sequence[int]
    default_partitions: int
    default_replication_factor: int
    racks: Mapping[int, str] = field(default_factory=dict)
    away: Collection[int] = ()
    # Where the first partition's leader is: that many steps along the circle.
    start: int = 0


def placement_of(
    image: ClusterImage, *, default_partitions: int, default_replication_factor: int, start: int
) -> Placement:
    """`start` may be anything that differs from request to request; the number of partitions will do."""
    brokers = standing(image)
    known = sorted(known_brokers(image))
    return Placement(
        brokers=known,
        default_partitions=default_partitions,
        default_replication_factor=default_replication_factor,
        racks=_racks(image),
        away=frozenset(known) - (brokers.live - brokers.stopping),
        start=start,
    )


def _racks(image: ClusterImage) -> dict[int, str]:
    """Where each is, or was last."""
    racks = {broker: known.rack for broker, known in image.registrations.items()}
    racks |= {broker.id: broker.rack for broker in image.present.values()}
    return {broker: rack for broker, rack in racks.items() if rack is not None}


def known_brokers(image: ClusterImage) -> set[int]:
    """Where a replica may be put: also on brokers that are away and will come back."""
    return image.registrations.keys() | image.brokers.keys()


def check_replicas(brokers: Sequence[int], known: Collection[int]) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless these can be the replicas of one partition."""
    if not brokers:
        raise _bad_assignment("includes an empty replica list.")
    for broker in brokers:
        if brokers.count(broker) > 1:
            raise _bad_assignment(f"includes the broker {broker} more than once.")
        if broker not in known:
            raise _bad_assignment(f"includes broker {broker}, but no such broker is registered.")


def _bad_assignment(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {why}")


def new_partition(replicas: tuple[int, ...], away: Collection[int] = ()) -> PartitionImage:
    """As it is born: whoever is there is in sync, the first of these leads. Somebody must be there."""
    isr = tuple(replica for replica in replicas if replica not in away)
    return PartitionImage(isr[0], 0, 0, replicas, isr)


def by_hand(index: int, brokers: Sequence[int], factor: int, placement: Placement) -> PartitionImage:
    check_replicas(brokers, placement.brokers)
    if len(brokers) != factor:
        raise _bad_assignment(
            f"includes a partition with {len(brokers)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )
    if all(broker in placement.away for broker in brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers in the manual partition assignment for partition {index} are away or stopping.",
        )
    return new_partition(tuple(brokers), placement.away)


def placed(count: int, factor: int, placement: Placement, *, first: int = 0) -> tuple[PartitionImage, ...]:
    """So many partitions, from the one with index `first` on."""
    known = len(placement.brokers)
    if factor > known:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {known} broker(s) are registered.",
        )
    circle = _circle(placement)
    leaders = [broker for broker in circle if broker not in placement.away]
    if not leaders:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): All brokers are away or stopping.",
        )
    # Partitions with the same replicas are the same value: thousands of them cost one object.
    seen: dict[tuple[int, int], PartitionImage] = {}
    partitions = []
    for turn in range(placement.start + first, placement.start + first + count):
        leader = leaders[turn % len(leaders)]
        shift = turn // len(leaders) % max(1, known - 1)
        if (leader, shift) not in seen:
            replicas = _replicas(leader, shift, factor, circle, placement)
            seen[leader, shift] = new_partition(replicas, placement.away)
        partitions.append(seen[leader, shift])
    return tuple(partitions)


def start_of(leader: int, placement: Placement) -> int:
    """The start by which `leader` would lead the first partition; that of the placement if it is away."""
    leaders = [broker for broker in _circle(placement) if broker not in placement.away]
    return leaders.index(leader) if leader in leaders else placement.start


def _circle(placement: Placement) -> list[int]:
    racks: dict[object, list[int]] = {}
    for broker in placement.brokers:
        racks.setdefault(_rack(broker, placement), []).append(broker)
    turns = zip_longest(*racks.values())
    return [broker for turn in turns for broker in turn if broker is not None]


def _rack(broker: int, placement: Placement) -> object:
    return placement.racks.get(broker, broker)


def _replicas(leader: int, shift: int, factor: int, circle: Sequence[int], placement: Placement) -> tuple[int, ...]:
    at = circle.index(leader)
    others = [*circle[at + 1 :], *circle[:at]]
    others = others[shift:] + others[:shift]
    return (leader, *_followers(leader, factor - 1, others, placement))


def _followers(leader: int, count: int, others: Sequence[int], placement: Placement) -> Iterator[int]:
    left, on_rack = list(others), Counter([_rack(leader, placement)])
    for _ in range(count):
        # The first of the best ones: `min` keeps the order.
        chosen = min(left, key=lambda broker: (on_rack[_rack(broker, placement)], broker in placement.away))
        left.remove(chosen)
        on_rack[_rack(chosen, placement)] += 1
        yield chosen
