"""AlterPartitionReassignments v0-1 and ListPartitionReassignments v0 (KIP-455, KIP-860).

A reassignment goes from the original replicas to those of its target:

- **Begin**: replicas = target, then those to be removed; `adding` are new, `removing` go at the end. The ISR stays.
- **End** (`settling.py`): when all of the target are in sync, replicas = target. That may be at once, if only the order
  changes or replicas are only removed.
- **Another target meanwhile** starts from the original replicas: those that were being added and are not in the new
  target are gone at once, those that were being removed may stay.
- **Cancel** goes back to the original replicas. Dropping replicas that were added may leave nobody in sync, or nobody
  who may ever lead; that is refused unless unclean election is allowed.

Errors of a partition: UNKNOWN_TOPIC_OR_PARTITION; NO_REASSIGNMENT_IN_PROGRESS to cancel; INVALID_REPLICA_ASSIGNMENT for
replicas that are none, twice, or unknown; INVALID_REPLICATION_FACTOR if their number changes and must not. A partition
that is named twice gets INVALID_REQUEST both times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Pauses
from ottla.controller.drafts import PARTITIONS_PER_STEP, Drafts
from ottla.controller.placement import check_replicas, known_brokers
from ottla.controller.rules import Rules, min_insync_in_force
from ottla.controller.settling import settle
from ottla.controller.standing import Standing, standing
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage
from ottla.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding or partition.removing)


def alter_reassignments(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest, rules: Rules
) -> Pauses[tuple[AlterPartitionReassignmentsResponse, dict[str, TopicImage]]]:
    """The answer, and the topics that change; there may be ten thousand partitions."""
    brokers, responses, drafts, count = standing(image), [], Drafts(image), 0
    named = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    for topic in request.topics:
        results = []
        for wanted in topic.partitions:
            count += 1
            if count % PARTITIONS_PER_STEP == 0:
                yield
            index, code, message = wanted.partition_index, ErrorCode.NONE, None
            try:
                if named[topic.name, index] > 1:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST, f"Partition {topic.name}:{index} is named more than once."
                    )
                after = _altered(image, image.topics.get(topic.name), topic.name, wanted, request, brokers, rules)
                drafts.change(topic.name, index, after)
            except ApiError as error:
                code, message = error.code, error.message
            results.append(
                AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                    partition_index=index, error_code=code, error_message=message
                )
            )
        responses.append(
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=topic.name, partitions=results)
        )
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=responses
    )
    return response, drafts.changed()


def _altered(
    image: ClusterImage,
    topic: TopicImage | None,
    name: str,
    wanted: AlterPartitionReassignmentsRequest.ReassignablePartition,
    request: AlterPartitionReassignmentsRequest,
    brokers: Standing,
    rules: Rules,
) -> PartitionImage:
    index = wanted.partition_index
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    before, unclean = topic.partitions[index], rules.unclean_election(topic)
    if wanted.replicas is None:
        target = _reverted(before)
    else:
        check_replicas(wanted.replicas, known_brokers(image))
        if not request.allow_replication_factor_change:
            _check_factor(before, wanted.replicas)
        target = _begun(before, tuple(wanted.replicas))
    costs_all = (before.isr and not target.isr) or (_possible(before) and not _possible(target))
    if costs_all and not unclean:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Partition {name}:{index} would have no in-sync replica left, which needs an unclean leader election.",
        )
    return settle(before, brokers, min_insync=min_insync_in_force(topic, rules), unclean=unclean, target=target)


def _possible(partition: PartitionImage) -> set[int]:
    """Who may lead now, or once it is back, without an unclean election."""
    return {*partition.isr, *partition.elr, partition.last_known_leader} & set(partition.replicas)


def _original(partition: PartitionImage) -> tuple[int, ...]:
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def _check_factor(partition: PartitionImage, replicas: Sequence[int]) -> None:
    factor = len(partition.replicas) - len(partition.removing)
    if len(replicas) != factor:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {factor} to {len(replicas)}, which this request does not allow.",
        )


def _begun(before: PartitionImage, target: tuple[int, ...]) -> PartitionImage:
    original = _original(before)
    removing = tuple(replica for replica in original if replica not in target)
    replicas = target + removing
    return replace(
        before,
        replicas=replicas,
        isr=tuple(member for member in before.isr if member in replicas),
        adding=tuple(replica for replica in target if replica not in original),
        removing=removing,
    )


def _reverted(before: PartitionImage) -> PartitionImage:
    if not is_moving(before):
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    original = _original(before)
    isr = tuple(member for member in before.isr if member in original)
    return replace(before, replicas=original, isr=isr, adding=(), removing=())


def list_reassignments(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Those of the named partitions, or of all, that are under way; what is unknown is left out, as Kafka does it."""
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        asked = [(name, range(len(topic.partitions))) for name, topic in image.topics.items()]
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = []
    for name, indexes in asked:
        known = image.topics[name].partitions if name in image.topics else ()
        moving = [
            ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                partition_index=index,
                replicas=known[index].replicas,
                adding_replicas=known[index].adding,
                removing_replicas=known[index].removing,
            )
            for index in indexes
            if 0 <= index < len(known) and is_moving(known[index])
        ]
        if moving:
            topics.append(ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=name, partitions=moving))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)
