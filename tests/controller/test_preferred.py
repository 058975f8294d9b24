"""ElectLeaders and the balance of leaders."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.common.errors import ErrorCode
from ottla.common.steps import to_the_end
from ottla.controller.preferred import PREFERRED, UNCLEAN, elect_leaders, rebalance
from ottla.metadata.image import NO_LEADER, ClusterImage, PartitionImage, Registration
from ottla.protocol.messages import ElectLeadersRequest
from tests.controller.cluster import cluster, only, partition, rules, without

E = ErrorCode


def request(election_type: int, partitions: Sequence[int] | None = (0,), topic: str = "orders") -> ElectLeadersRequest:
    named = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=partitions or ())
    return ElectLeadersRequest(election_type=election_type, topic_partitions=None if partitions is None else [named])


STOPPING = {1: Registration(11, is_active=True, is_stopping=True)}


@pytest.mark.parametrize(
    ("election_type", "image", "code", "leader"),
    [
        (PREFERRED, cluster(partition(leader=2)), E.NONE, 1),
        (PREFERRED, cluster(partition()), E.ELECTION_NOT_NEEDED, None),
        (PREFERRED, cluster(partition(isr=(2, 3))), E.PREFERRED_LEADER_NOT_AVAILABLE, None),
        (PREFERRED, without(cluster(partition(isr=(2, 3))), 1), E.PREFERRED_LEADER_NOT_AVAILABLE, None),
        (PREFERRED, cluster(partition(isr=(2,)), registrations=STOPPING), E.PREFERRED_LEADER_NOT_AVAILABLE, None),
        (PREFERRED, cluster(partition(isr=(), elr=(2,))), E.NONE, 2),  # it had none, and somebody can lead
        (UNCLEAN, cluster(partition(isr=(2,))), E.ELECTION_NOT_NEEDED, None),
        (UNCLEAN, without(cluster(partition(isr=(), elr=(1,))), 1), E.NONE, 2),
        (UNCLEAN, cluster(partition(isr=(), elr=(3,))), E.NONE, 3),  # clean if it can be
        (UNCLEAN, without(cluster(partition(isr=())), 1, 2, 3), E.ELIGIBLE_LEADERS_NOT_AVAILABLE, None),
    ],
)
def test_an_election_and_its_error(
    election_type: int, image: ClusterImage, code: ErrorCode, leader: int | None
) -> None:
    response, topics = to_the_end(elect_leaders(image, request(election_type), rules()))
    (result,) = response.replica_election_results[0].partition_result
    assert (response.error_code, result.error_code) == (E.NONE, code)
    assert (only(topics).leader if topics else None) == leader


@pytest.mark.parametrize(("topic", "index"), [("other", 0), ("orders", 1), ("orders", -1)])
def test_what_is_unknown_is_said(topic: str, index: int) -> None:
    response, topics = to_the_end(elect_leaders(cluster(partition()), request(PREFERRED, [index], topic), rules()))
    assert response.replica_election_results[0].partition_result[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert topics == {}


def test_an_unknown_type_of_election_is_refused() -> None:
    response, topics = to_the_end(elect_leaders(cluster(partition(leader=2)), request(7), rules()))
    assert (response.error_code, topics) == (E.INVALID_REQUEST, {})
    assert response.replica_election_results[0].partition_result[0].error_code == E.INVALID_REQUEST


def test_of_all_partitions_only_those_that_needed_one_are_told() -> None:
    image = cluster(partition(), partition(leader=2), partition(isr=(2, 3)))
    response, topics = to_the_end(elect_leaders(image, request(PREFERRED, None), rules()))
    (topic,) = response.replica_election_results
    told = [(result.partition_id, result.error_code) for result in topic.partition_result]
    assert told == [(1, E.NONE), (2, E.PREFERRED_LEADER_NOT_AVAILABLE)]
    assert [known.leader for known in topics["orders"].partitions] == [1, 1, 2]


def test_a_partition_that_is_named_twice_is_elected_once() -> None:
    response, topics = to_the_end(elect_leaders(cluster(partition(leader=2)), request(PREFERRED, [0, 0]), rules()))
    codes = [result.error_code for result in response.replica_election_results[0].partition_result]
    assert (codes, only(topics).leader_epoch) == ([E.NONE, E.ELECTION_NOT_NEEDED], 6)


def ten(missing: int) -> list[PartitionImage]:
    return [partition(leader=2 if index < missing else 1) for index in range(10)]


def test_leaders_are_balanced_once_too_many_are_elsewhere() -> None:
    assert rebalance(cluster(*ten(1)), rules(), imbalance_percentage=10) == {}
    topics = rebalance(cluster(*ten(2)), rules(), imbalance_percentage=10)
    assert {known.leader for known in topics["orders"].partitions} == {1}
    assert [known.leader_epoch for known in topics["orders"].partitions] == [6, 6, *[5] * 8]


@pytest.mark.parametrize(
    "image",
    [
        without(cluster(partition(isr=(2, 3))), 1),
        cluster(partition(isr=(2, 3))),  # not in sync yet
        cluster(partition(leader=2), registrations=STOPPING),
        cluster(partition(isr=(), elr=())),
    ],
)
def test_nobody_is_given_what_it_cannot_lead(image: ClusterImage) -> None:
    assert rebalance(image, rules(), imbalance_percentage=0) == {}


def test_a_partition_without_a_leader_is_no_business_of_the_balance() -> None:
    image = cluster(partition(isr=(), elr=(1,)))
    assert only(image.topics).leader == NO_LEADER
    assert rebalance(image, rules(), imbalance_percentage=0) == {}
