"""Reassignments: begin, end, another target, cancel, and every error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ottla.common.errors import ErrorCode
from ottla.common.steps import to_the_end
from ottla.controller.reassignments import alter_reassignments, list_reassignments
from ottla.controller.rules import Rules
from ottla.metadata.image import ClusterImage, PartitionImage, Registration, TopicImage
from ottla.protocol.messages import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from tests.controller.cluster import cluster, only, partition, rules, without

E = ErrorCode
BROKERS = (1, 2, 3, 4, 5)


def move(
    image: ClusterImage,
    replicas: Sequence[int] | None,
    *,
    topic: str = "orders",
    index: int = 0,
    allow_factor_change: bool = True,
    by: Rules | None = None,
) -> tuple[ErrorCode, dict[str, TopicImage]]:
    wanted = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=allow_factor_change,
        topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[wanted])],
    )
    response, topics = to_the_end(alter_reassignments(image, request, by or rules()))
    assert response.error_code == E.NONE
    result = response.responses[0].partitions[0]
    # Kafka has no words for this one.
    has_words = result.error_code not in (E.NONE, E.NO_REASSIGNMENT_IN_PROGRESS)
    assert has_words == bool(result.error_message)
    return ErrorCode(result.error_code), topics


def moved(before: PartitionImage, replicas: Sequence[int] | None, by: Rules | None = None) -> PartitionImage:
    code, topics = move(cluster(before, brokers=BROKERS), replicas, by=by)
    assert code == E.NONE
    return only(topics)


MOVING = partition((1, 4, 2, 3), (1, 2, 3), adding=(4,), removing=(2, 3))


@pytest.mark.parametrize(
    ("target", "replicas", "adding", "removing"),
    [
        ((1, 2, 4), (1, 2, 4, 3), (4,), (3,)),
        ((4, 5, 3), (4, 5, 3, 1, 2), (4, 5), (1, 2)),
        ((1, 2, 3, 4), (1, 2, 3, 4), (4,), ()),
    ],
)
def test_it_begins_with_the_replicas_of_both(
    target: tuple[int, ...], replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
) -> None:
    after = moved(partition(), target)
    assert (after.replicas, after.adding, after.removing) == (replicas, adding, removing)
    assert (after.leader, set(after.isr)) == (1, {1, 2, 3}), "nothing changes before the new ones are in sync"
    assert (after.leader_epoch, after.partition_epoch) == (5, 8)


def test_only_another_order_is_done_at_once() -> None:
    after = moved(partition(), (3, 1, 2))
    assert (after.replicas, after.isr, after.adding, after.removing) == ((3, 1, 2), (3, 1, 2), (), ())
    assert (after.leader, after.leader_epoch) == (1, 5)


def test_fewer_replicas_that_are_in_sync_are_done_at_once() -> None:
    after = moved(partition(), (2, 3))
    assert (after.replicas, after.isr, after.removing) == ((2, 3), (2, 3), ())
    assert (after.leader, after.leader_epoch) == (2, 6)


def test_fewer_replicas_wait_until_they_are_in_sync() -> None:
    after = moved(partition(isr=(1, 2)), (2, 3))
    assert (after.replicas, after.isr, after.removing) == ((2, 3, 1), (2, 1), (1,))


def test_another_target_starts_from_the_original_replicas() -> None:
    after = moved(MOVING, (1, 5, 2))
    assert (after.replicas, after.adding, after.removing) == ((1, 5, 2, 3), (5,), (3,))
    assert after.leader_epoch == 6, "4 is removed"


def test_the_same_target_again_changes_nothing() -> None:
    assert move(cluster(MOVING, brokers=BROKERS), (1, 4)) == (E.NONE, {})


def test_cancelling_goes_back_to_the_original_replicas() -> None:
    after = moved(MOVING, None)
    assert (after.replicas, after.isr, after.adding, after.removing) == ((1, 2, 3), (1, 2, 3), (), ())
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_a_leader_that_was_added_goes_when_it_is_cancelled() -> None:
    after = moved(partition((4, 1, 2), (4, 1), adding=(4,), removing=(2,)), None)
    assert (after.leader, after.replicas, after.isr) == (1, (1, 2), (1,))


def test_cancelling_must_not_cost_the_last_in_sync() -> None:
    before = partition((4, 1, 2), (4,), adding=(4,), removing=(2,))
    assert move(cluster(before, brokers=BROKERS), None) == (E.INVALID_REPLICA_ASSIGNMENT, {})
    assert move(cluster(before, brokers=BROKERS), (1, 2, 3)) == (E.INVALID_REPLICA_ASSIGNMENT, {})
    after = moved(before, None, by=rules(unclean=True))
    assert (after.leader, after.isr, after.elr) == (1, (1,), ())


@pytest.mark.parametrize("waits_for", [partition((1, 4), (), elr=(4,)), partition((1, 4), (), last_known_leader=4)])
def test_cancelling_must_not_cost_the_only_one_who_may_lead(waits_for: PartitionImage) -> None:
    image = cluster(replace(waits_for, adding=(4,)), brokers=(1, 2))
    image = replace(image, registrations={**image.registrations, 4: Registration(14, is_active=False)})
    assert move(image, None) == (E.INVALID_REPLICA_ASSIGNMENT, {})
    assert only(move(image, None, by=rules(unclean=True))[1]).leader == 1


def test_cancelling_is_fine_while_an_eligible_replica_is_awaited() -> None:
    image = cluster(partition((1, 2, 3), (), elr=(1,), adding=(2,), removing=(3,)), brokers=(2, 3))
    code, topics = move(image, None)
    assert (code, only(topics).replicas, only(topics).elr) == (E.NONE, (1, 3), (1,))


@pytest.mark.parametrize(
    ("replicas", "topic", "index", "code"),
    [
        ((1, 2), "other", 0, E.UNKNOWN_TOPIC_OR_PARTITION),
        ((1, 2), "orders", 1, E.UNKNOWN_TOPIC_OR_PARTITION),
        ((1, 2), "orders", -1, E.UNKNOWN_TOPIC_OR_PARTITION),
        (None, "orders", 0, E.NO_REASSIGNMENT_IN_PROGRESS),
        ((), "orders", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), "orders", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), "orders", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ((1, -1), "orders", 0, E.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_refused_changes_nothing(
    replicas: Sequence[int] | None, topic: str, index: int, code: ErrorCode
) -> None:
    assert move(cluster(partition()), replicas, topic=topic, index=index) == (code, {})


def test_a_broker_that_is_away_may_be_a_target() -> None:
    code, topics = move(without(cluster(partition((1, 2))), 3), (1, 3))
    assert (code, only(topics).adding) == (E.NONE, (3,))


@pytest.mark.parametrize(
    ("before", "target", "code"),
    [
        (partition(), (1, 2), E.INVALID_REPLICATION_FACTOR),
        (partition(), (1, 2, 3, 4), E.INVALID_REPLICATION_FACTOR),
        (partition(), (1, 2, 4), E.NONE),
        (MOVING, (1, 5), E.NONE),  # two is what it is on its way to
        (MOVING, (1, 2, 3), E.INVALID_REPLICATION_FACTOR),
    ],
)
def test_the_number_of_replicas_changes_only_if_it_may(
    before: PartitionImage, target: tuple[int, ...], code: ErrorCode
) -> None:
    assert move(cluster(before, brokers=BROKERS), target, allow_factor_change=False)[0] == code


def test_partitions_of_a_topic_change_together_and_one_named_twice_not_at_all() -> None:
    image = cluster(partition((1, 2)), partition((1, 2)), partition((1, 2)), brokers=BROKERS)
    wanted = [(0, (1, 3)), (1, (1, 4)), (2, (1, 3)), (2, (1, 4))]
    partitions = [
        AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=index, replicas=replicas)
        for index, replicas in wanted
    ]
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="orders", partitions=partitions)
    response, topics = to_the_end(
        alter_reassignments(image, AlterPartitionReassignmentsRequest(topics=[topic]), rules())
    )
    codes = [result.error_code for result in response.responses[0].partitions]
    assert codes == [E.NONE, E.NONE, E.INVALID_REQUEST, E.INVALID_REQUEST]
    assert [known.adding for known in topics["orders"].partitions] == [(3,), (4,), ()]


def test_what_is_under_way_is_listed() -> None:
    image = cluster(partition(), MOVING, brokers=BROKERS)
    everything = list_reassignments(image, ListPartitionReassignmentsRequest(topics=None))
    (topic,) = everything.topics
    (listed,) = topic.partitions
    assert (topic.name, listed.partition_index) == ("orders", 1)
    assert (listed.replicas, listed.adding_replicas, listed.removing_replicas) == ((1, 4, 2, 3), (4,), (2, 3))
    asked = [("orders", [0, 1, 7]), ("other", [0])]
    some = ListPartitionReassignmentsRequest(
        topics=[
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in asked
        ]
    )
    assert list_reassignments(image, some) == everything
    assert list(list_reassignments(image, ListPartitionReassignmentsRequest(topics=[])).topics) == []
