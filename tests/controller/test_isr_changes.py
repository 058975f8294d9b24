"""AlterPartition: every check and its error, then what an accepted change does."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.controller.isr_changes import alter_partition
from ottla.metadata import image as images
from ottla.metadata.image import ClusterImage, Registration
from ottla.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from tests.controller.cluster import TOPIC_ID, cluster, only, partition, registered, rules

E = ErrorCode


def state(broker: int, epoch: int | None = None) -> AlterPartitionRequest.BrokerState:
    return AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=10 + broker if epoch is None else epoch)


def asked(isr: tuple[int, ...] = (1, 2), **other: Any) -> AlterPartitionRequest.PartitionData:
    fields = {"leader_epoch": 5, "partition_epoch": 7, "new_isr_with_epochs": [state(member) for member in isr]}
    return AlterPartitionRequest.PartitionData(**{"partition_index": 0, **fields, **other})


def request(*wanted: AlterPartitionRequest.PartitionData, broker: int = 1, **other: Any) -> AlterPartitionRequest:
    topics = [AlterPartitionRequest.TopicData(topic_id=other.pop("topic_id", TOPIC_ID), partitions=wanted)]
    return AlterPartitionRequest(**{"broker_id": broker, "broker_epoch": 10 + broker, "topics": topics, **other})


def answer(response: AlterPartitionResponse) -> AlterPartitionResponse.PartitionData:
    assert response.error_code == E.NONE
    return response.topics[0].partitions[0]


STOPPING = {3: Registration(13, is_active=True, is_stopping=True)}
REFUSED = [
    ("another topic", request(asked(), topic_id=b"x" * 16), E.UNKNOWN_TOPIC_ID),
    ("another partition", request(asked(partition_index=9)), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("no partition", request(asked(partition_index=-1)), E.UNKNOWN_TOPIC_OR_PARTITION),
    ("a leader epoch of the future", request(asked(leader_epoch=6)), E.NOT_CONTROLLER),
    ("a partition epoch of the future", request(asked(partition_epoch=8)), E.NOT_CONTROLLER),
    ("one old, one of the future", request(asked(leader_epoch=4, partition_epoch=8)), E.NOT_CONTROLLER),
    ("an old leader epoch", request(asked(leader_epoch=4)), E.FENCED_LEADER_EPOCH),
    ("both old", request(asked(leader_epoch=4, partition_epoch=6)), E.FENCED_LEADER_EPOCH),
    ("not the leader", request(asked((1, 2)), broker=2), E.INVALID_REQUEST),
    ("not the leader, and old", request(asked((1, 2), partition_epoch=6), broker=2), E.INVALID_REQUEST),
    ("an old partition epoch", request(asked(partition_epoch=6)), E.INVALID_UPDATE_VERSION),
    ("old, and not even valid", request(asked((), partition_epoch=6)), E.INVALID_UPDATE_VERSION),
    ("nobody", request(asked(())), E.INVALID_REQUEST),
    ("somebody twice", request(asked((1, 2, 2))), E.INVALID_REQUEST),
    ("somebody who is no replica", request(asked((1, 4))), E.INVALID_REQUEST),
    ("without the leader", request(asked((2, 3))), E.INVALID_REQUEST),
    ("recovering", request(asked((1,), leader_recovery_state=1)), E.INVALID_REQUEST),
    ("a broker of before", request(asked(new_isr_with_epochs=[state(1), state(2, 11)])), E.INELIGIBLE_REPLICA),
    ("a broker of the future", request(asked(new_isr_with_epochs=[state(1), state(2, 99)])), E.INELIGIBLE_REPLICA),
]


@pytest.mark.parametrize(("refused", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_refused_changes_nothing(refused: AlterPartitionRequest, code: ErrorCode) -> None:
    image = cluster(partition(isr=(1, 2)), brokers=(1, 2, 3, 4))
    response, topics = alter_partition(image, refused, rules())
    assert answer(response).error_code == code
    assert topics == {}


@pytest.mark.parametrize(
    ("image", "isr"),
    [
        (cluster(partition(isr=(1, 2)), brokers=(1, 2)), (1, 2, 3)),  # never seen
        (cluster(partition(isr=(1, 2)), registrations=STOPPING), (1, 2, 3)),
        (registered(cluster(partition(isr=(1, 2))), 3), (1, 2, 3)),  # registered, not taken in
        (cluster(partition(isr=(1, 2), offline=(3,))), (1, 2, 3)),  # its directory failed
    ],
)
def test_who_may_not_be_in_sync_is_refused_by_either_version(image: ClusterImage, isr: tuple[int, ...]) -> None:
    for wanted in (asked(isr), asked(new_isr_with_epochs=[], new_isr=isr)):
        response, topics = alter_partition(image, request(wanted), rules())
        assert answer(response).error_code == E.INELIGIBLE_REPLICA
        assert topics == {}


@pytest.mark.parametrize(
    "stale",
    [request(asked(), broker_epoch=10), request(asked(), broker_epoch=12), request(asked(), broker_id=9)],
)
def test_a_broker_that_is_not_the_one_we_know_is_told_so(stale: AlterPartitionRequest) -> None:
    response, topics = alter_partition(cluster(partition()), stale, rules())
    assert (response.error_code, list(response.topics), topics) == (E.STALE_BROKER_EPOCH, [], {})


def test_a_broker_that_is_not_taken_in_yet_changes_nothing() -> None:
    image = registered(cluster(partition()), 1)
    response, topics = alter_partition(image, request(asked(), broker_epoch=12), rules())
    assert (response.error_code, topics) == (E.STALE_BROKER_EPOCH, {})


def test_a_shrink_and_what_the_leader_is_told() -> None:
    response, topics = alter_partition(cluster(partition()), request(asked((1, 3))), rules())
    after, told = only(topics), answer(response)
    assert (after.leader, after.leader_epoch, after.partition_epoch, after.isr, after.elr) == (1, 5, 8, (1, 3), ())
    assert (told.error_code, told.leader_id, told.leader_epoch, told.partition_epoch) == (E.NONE, 1, 5, 8)
    assert list(told.isr) == [1, 3]


def test_version_2_names_no_epochs() -> None:
    wanted = asked(new_isr_with_epochs=[], new_isr=[1, 2, 3])
    response, topics = alter_partition(cluster(partition(isr=(1,))), request(wanted), rules())
    assert (answer(response).error_code, only(topics).isr) == (E.NONE, (1, 2, 3))


def test_an_epoch_of_minus_one_is_not_compared() -> None:
    wanted = asked(new_isr_with_epochs=[state(1), state(2, -1)])
    assert only(alter_partition(cluster(partition(isr=(1,))), request(wanted), rules())[1]).isr == (1, 2)


@pytest.mark.parametrize(
    ("isr", "elr", "wanted", "expected"),
    [
        ((1, 2, 3), (), (1,), (2, 3)),  # both had everything, and one alone commits nothing
        ((1, 2), (), (1,), (2,)),
        ((1,), (2,), (1, 3), ()),  # two commit, which the third does not have
        ((1, 3), (), (1, 2), ()),
    ],
)
def test_who_is_eligible_afterwards(
    isr: tuple[int, ...], elr: tuple[int, ...], wanted: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    topics = alter_partition(cluster(partition(isr=isr, elr=elr)), request(asked(wanted)), rules())[1]
    assert (only(topics).isr, only(topics).elr) == (wanted, expected)


def test_the_isr_is_kept_in_the_order_of_the_replicas() -> None:
    image = cluster(partition((3, 1, 2), (1,)))
    assert only(alter_partition(image, request(asked((1, 2, 3))), rules())[1]).isr == (3, 1, 2)


def test_nothing_new_is_no_change() -> None:
    response, topics = alter_partition(cluster(partition(isr=(1, 2))), request(asked((2, 1))), rules())
    assert (answer(response).error_code, answer(response).partition_epoch, topics) == (E.NONE, 7, {})


def test_a_partition_that_is_named_twice_is_changed_once() -> None:
    response, topics = alter_partition(cluster(partition()), request(asked((1, 2)), asked((1,))), rules())
    codes = [told.error_code for told in response.topics[0].partitions]
    assert (codes, only(topics).isr) == ([E.NONE, E.INVALID_UPDATE_VERSION], (1, 2))


def test_one_refusal_does_not_touch_the_others() -> None:
    image = cluster(partition(), partition())
    response, topics = alter_partition(image, request(asked((1, 9)), asked((1, 2), partition_index=1)), rules())
    assert [told.error_code for told in response.topics[0].partitions] == [E.INVALID_REQUEST, E.NONE]
    assert topics["orders"].partitions[0] is image.topics["orders"].partitions[0]


def test_a_reassignment_is_complete_when_its_target_is_in_sync() -> None:
    moving = partition((1, 3, 2), (1, 2), adding=(3,), removing=(2,))
    response, topics = alter_partition(cluster(moving), request(asked((1, 2, 3))), rules())
    after, told = only(topics), answer(response)
    assert (after.replicas, after.isr, after.adding, after.removing) == ((1, 3), (1, 3), (), ())
    assert (after.leader, after.leader_epoch) == (1, 6), "what the removed one still sends belongs to an old epoch"
    assert (told.error_code, told.leader_epoch, list(told.isr)) == (E.NONE, 6, [1, 3])


def test_a_leader_that_is_moved_away_is_told_that_there_is_another() -> None:
    moving = partition((2, 3, 1), (1, 2), leader=1, adding=(3,), removing=(1,))
    response, topics = alter_partition(cluster(moving), request(asked((1, 2, 3))), rules())
    assert answer(response).error_code == E.NEW_LEADER_ELECTED
    assert (only(topics).leader, only(topics).replicas, only(topics).leader_epoch) == (2, (2, 3), 6)


def test_a_leader_that_is_stopping_hands_over_to_whoever_has_caught_up() -> None:
    image = cluster(partition((1, 2), (1,)), registrations={1: Registration(11, is_active=True, is_stopping=True)})
    response, topics = alter_partition(image, request(asked((1, 2))), rules())
    assert answer(response).error_code == E.NEW_LEADER_ELECTED
    assert (only(topics).leader, only(topics).isr, only(topics).elr) == (2, (2,), (1,))


def test_topics_are_found_by_their_id_only() -> None:
    image = images.without_topics(cluster(partition()), ["orders"])
    assert answer(alter_partition(image, request(asked()), rules())[0]).error_code == E.UNKNOWN_TOPIC_ID
