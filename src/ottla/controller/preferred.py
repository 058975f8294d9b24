"""ElectLeaders v0-2 (KIP-460), and the balance of leaders (`auto.leader.rebalance.enable`).

- **Preferred**: the first replica leads if it is live and in sync. ELECTION_NOT_NEEDED if it leads already,
  PREFERRED_LEADER_NOT_AVAILABLE if it cannot, unless the partition had no leader and somebody else leads now.
- **Unclean**: for partitions without a leader only, whatever the topic's settings say. ELECTION_NOT_NEEDED if there is
  one, ELIGIBLE_LEADERS_NOT_AVAILABLE if no replica is live. Who has all records goes first (`elections.py`).

When all partitions are asked for, those that need no election are not in the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Pauses
from ottla.controller.drafts import PARTITIONS_PER_STEP, Drafts
from ottla.controller.rules import Rules, min_insync_in_force
from ottla.controller.settling import settle
from ottla.controller.standing import Standing, standing
from ottla.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

PREFERRED, UNCLEAN = 0, 1


def elect_leaders(
    image: ClusterImage, request: ElectLeadersRequest, rules: Rules
) -> Pauses[tuple[ElectLeadersResponse, dict[str, TopicImage]]]:
    """The answer, and the topics that change; there may be ten thousand partitions."""
    asks_all = request.topic_partitions is None
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topic_partitions is None:
        asked = [(name, range(len(topic.partitions))) for name, topic in image.topics.items()]
    else:
        asked = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    is_known_type = request.election_type in (PREFERRED, UNCLEAN)
    brokers, answers, drafts, count = standing(image), [], Drafts(image), 0
    for name, indexes in asked:
        results = []
        for index in indexes:
            count += 1
            if count % PARTITIONS_PER_STEP == 0:
                yield
            error = ApiError(ErrorCode.NONE)
            try:
                if not is_known_type:
                    raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
                after = _elected(image, drafts, name, index, request.election_type == UNCLEAN, brokers, rules)
                drafts.change(name, index, after)
            except ApiError as refused:
                error = refused
            if asks_all and error.code is ErrorCode.ELECTION_NOT_NEEDED:
                continue
            results.append(
                ElectLeadersResponse.PartitionResult(
                    partition_id=index, error_code=error.code, error_message=error.message
                )
            )
        answers.append(ElectLeadersResponse.ReplicaElectionResult(topic=name, partition_result=results))
    code = ErrorCode.NONE if is_known_type else ErrorCode.INVALID_REQUEST
    return ElectLeadersResponse(error_code=code, replica_election_results=answers), drafts.changed()


def _elected(
    image: ClusterImage, drafts: Drafts, name: str, index: int, unclean: bool, brokers: Standing, rules: Rules
) -> PartitionImage:
    topic, before = image.topics.get(name), drafts.partition(name, index)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if before is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    is_fine = before.leader != NO_LEADER if unclean else before.leader == before.replicas[0]
    if is_fine:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    after = settle(
        before,
        brokers,
        min_insync=min_insync_in_force(topic, rules),
        unclean=unclean or rules.unclean_election(topic),
        prefer_first=not unclean,
    )
    if after.leader == before.leader:
        if unclean:
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica of this partition is live.")
        raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The first replica is not live, or not in sync.")
    return after


def rebalance(image: ClusterImage, rules: Rules, *, imbalance_percentage: int) -> dict[str, TopicImage]:
    """Give a broker the partitions of which it is the first replica, once it lacks more than so many of them
    (`leader.imbalance.per.broker.percentage`). Only where it can lead: live, in sync, not stopping."""
    preferred: Counter[int] = Counter()
    missing: Counter[int] = Counter()
    for topic in image.topics.values():
        for partition in topic.partitions:
            preferred[partition.replicas[0]] += 1
            missing[partition.replicas[0]] += partition.leader != partition.replicas[0]
    due = {broker for broker, count in missing.items() if count * 100 > preferred[broker] * imbalance_percentage}
    brokers = standing(image)
    due &= brokers.live - brokers.stopping
    changed = {}
    for name, topic in image.topics.items() if due else ():
        partitions = tuple(
            settle(
                partition,
                brokers,
                min_insync=min_insync_in_force(topic, rules),
                unclean=rules.unclean_election(topic),
                prefer_first=True,
            )
            if _may_change_to_first(partition, due)
            else partition
            for partition in topic.partitions
        )
        if partitions != topic.partitions:
            changed[name] = replace(topic, partitions=partitions)
    return changed


def _may_change_to_first(partition: PartitionImage, due: set[int]) -> bool:
    first = partition.replicas[0]
    return first in due and first in partition.isr and first != partition.leader
