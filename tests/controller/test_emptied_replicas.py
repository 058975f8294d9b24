"""A broker comes back without the log directory of its replicas: it follows, and leads nothing by what it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.common.ids import TopicPartition
from ottla.common.steps import to_the_end
from ottla.controller.broker_changes import reconcile
from ottla.controller.isr_changes import alter_partition
from ottla.controller.missing_replicas import missing_replicas
from ottla.controller.preferred import UNCLEAN, elect_leaders
from ottla.metadata.image import NO_LEADER, ClusterImage, PartitionImage, Registration
from ottla.protocol.messages import AlterPartitionRequest, ElectLeadersRequest
from tests.controller.cluster import TOPIC, TOPIC_ID, applied, cluster, only, partition, registered, rules, without

MISSING = {TOPIC_ID: (0,)}


def taken_in(image: ClusterImage, broker: int, *, is_missing: bool = True, unclean: bool = False) -> ClusterImage:
    image = registered(image, broker, missing=MISSING if is_missing else None)
    return applied(image, reconcile(image, rules(unclean=unclean)))


def emptied(image: ClusterImage) -> PartitionImage:
    return only(taken_in(image, 1).topics)


def test_it_is_not_eligible() -> None:
    after = emptied(cluster(partition(isr=(1,), elr=(2,))))
    assert (after.leader, after.isr, after.elr, after.emptied) == (2, (2,), (), (1,))


def test_the_last_known_leader_does_not_lead_with_an_empty_disk() -> None:
    after = emptied(cluster(partition(isr=(1,))))
    assert (after.leader, after.isr, after.elr, after.emptied) == (NO_LEADER, (), (), (1,))
    assert after.last_known_leader == 1, "it would lead again with the old one"


def test_other_partitions_of_the_broker_are_as_they_were() -> None:
    image = taken_in(cluster(partition(isr=(1,)), partition(isr=(1,))), 1)
    gone, kept = image.topics[TOPIC].partitions
    assert (gone.leader, kept.leader, kept.emptied) == (NO_LEADER, 1, ())


def test_it_leads_again_when_it_comes_back_with_the_directory() -> None:
    image = taken_in(cluster(partition(isr=(1,))), 1)
    after = only(taken_in(image, 1, is_missing=False).topics)
    assert (after.leader, after.isr, after.emptied) == (1, (1,), ())


def test_another_restart_with_the_empty_disk_changes_nothing() -> None:
    image = taken_in(cluster(partition(isr=(1,))), 1)
    assert only(taken_in(image, 1).topics) == only(image.topics)


def test_a_restart_of_somebody_else_does_not_make_it_whole() -> None:
    image = taken_in(taken_in(cluster(partition(isr=(1,))), 1), 2, is_missing=False)
    assert (only(image.topics).leader, only(image.topics).emptied) == (NO_LEADER, (1,))


@pytest.mark.parametrize("is_setting", [True, False])
def test_an_unclean_election_takes_somebody_who_has_records(is_setting: bool) -> None:
    if is_setting:
        image = taken_in(cluster(partition(isr=(1,))), 1, unclean=True)
    else:
        image = taken_in(cluster(partition(isr=(1,))), 1)
        request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None)
        image = replace(image, topics={**image.topics, **to_the_end(elect_leaders(image, request, rules()))[1]})
    after = only(image.topics)
    assert (after.leader, after.isr, after.emptied) == (2, (2,), (1,))


def test_an_unclean_election_takes_the_empty_one_if_there_is_nobody_else() -> None:
    image = without(taken_in(cluster(partition(isr=(1,))), 1), 2, 3)
    request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None)
    after = only(to_the_end(elect_leaders(image, request, rules()))[1])
    assert (after.leader, after.isr, after.emptied) == (1, (1,), ())


def test_it_is_like_the_others_when_it_has_caught_up() -> None:
    image = taken_in(cluster(partition()), 1)
    assert only(image.topics).emptied == (1,)
    before = only(image.topics)
    members = [
        AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=image.brokers[broker].epoch)
        for broker in (1, 2, 3)
    ]
    wanted = AlterPartitionRequest.PartitionData(
        partition_index=0,
        leader_epoch=before.leader_epoch,
        partition_epoch=before.partition_epoch,
        new_isr_with_epochs=members,
    )
    request = AlterPartitionRequest(
        broker_id=2,
        broker_epoch=image.brokers[2].epoch,
        topics=[AlterPartitionRequest.TopicData(topic_id=TOPIC_ID, partitions=[wanted])],
    )
    after = only(alter_partition(image, request, rules())[1])
    assert (after.isr, after.emptied) == ((1, 2, 3), ())


# --- which replicas are missing


def found(image: ClusterImage, here: tuple[str, ...], where: str | None) -> list[int]:
    registered_with = Registration(11, is_active=True, directories=("a", "b"))
    image = replace(image, registrations={**image.registrations, 1: registered_with})
    in_dirs = {} if where is None else {TopicPartition(TOPIC, 0): where}
    return [tp.partition for tp in missing_replicas(image, 1, here, in_dirs)]


@pytest.mark.parametrize(
    ("here", "where", "is_missing"),
    [
        (("a", "b"), "a", False),
        (("a", "b"), None, False),  # it was never made, or not synced: nothing but a crash took it
        (("a", "new"), None, True),
        (("a", "new"), "a", False),
        (("new",), None, True),
        (("a",), None, True),  # a disk that cannot be used
        (("a", "b", "new"), "new", False),  # somebody has moved the folder
        (("a", "old"), "old", True),  # a disk of before, from which the broker had gone on
    ],
)
def test_a_replica_is_missing_when_its_directory_is_gone(
    here: tuple[str, ...], where: str | None, is_missing: bool
) -> None:
    assert found(cluster(partition()), here, where) == ([0] if is_missing else [])


def test_a_directory_that_comes_back_has_what_was_missed() -> None:
    assert found(cluster(partition(isr=(2, 3), emptied=(1,))), ("old",), "old") == []


def test_replicas_of_others_are_not_missed() -> None:
    assert found(cluster(partition((2, 3))), ("new",), None) == []
