"""A log directory fails: its replicas are offline, the broker is not."""

from __future__ import annotations

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.controller.broker_changes import broker_gone, reconcile
from ottla.controller.log_dirs import replicas_offline, replicas_online
from ottla.metadata import image as images
from ottla.metadata.image import NO_LEADER
from tests.controller.cluster import TOPIC_ID, applied, cluster, only, partition, registered, rules


def test_a_replica_leaves_isr_and_leadership_and_others_stay() -> None:
    image = cluster(partition(), partition())
    first, second = replicas_offline(image, 1, 11, [(TOPIC_ID, 0)], rules())["orders"].partitions
    assert (first.leader, first.isr, first.elr, first.offline) == (2, (2, 3), (), (1,))
    assert (first.leader_epoch, first.partition_epoch) == (6, 8)
    assert second is image.topics["orders"].partitions[1]


def test_it_is_not_eligible_because_the_disk_may_come_back_empty() -> None:
    after = only(replicas_offline(cluster(partition(isr=(1, 2))), 1, 11, [(TOPIC_ID, 0)], rules()))
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())
    eligible = partition(isr=(2,), elr=(1,))
    assert only(replicas_offline(cluster(eligible), 1, 11, [(TOPIC_ID, 0)], rules())).elr == ()


def test_the_last_one_waits_for_its_broker_and_leads_again() -> None:
    image = cluster(partition(isr=(1,)))
    image = images.with_topics(image, replicas_offline(image, 1, 11, [(TOPIC_ID, 0)], rules()).values())
    lost = only(image.topics)
    assert (lost.leader, lost.isr, lost.elr, lost.last_known_leader) == (NO_LEADER, (), (), 1)
    assert reconcile(image, rules()).topics == {}, "its broker lives, and still cannot lead"
    image = applied(image, broker_gone(image, 1, rules()))
    back = only(reconcile(registered(image, 1), rules()).topics)
    assert (back.leader, back.isr, back.offline) == (1, (1,), ())


def test_who_comes_back_with_its_directory_must_catch_up_first() -> None:
    image = cluster(partition(isr=(2,), offline=(1,)))
    back = only(reconcile(registered(image, 1), rules()).topics)
    assert (back.isr, back.elr, back.offline) == ((2,), (), ())


def test_a_replica_whose_log_could_be_made_after_all_catches_up_as_any_other() -> None:
    image = cluster(partition(isr=(2, 3), offline=(1,)))
    back = only(replicas_online(image, 1, 11, [(TOPIC_ID, 0)], rules()))
    assert (back.leader, back.isr, back.elr, back.offline) == (2, (2, 3), (), ())
    assert (back.leader_epoch, back.partition_epoch) == (5, 8)


def test_a_replica_whose_log_could_be_made_after_all_leads_where_it_was_the_last_one_in_sync() -> None:
    image = cluster(partition(isr=(1,)))
    image = images.with_topics(image, replicas_offline(image, 1, 11, [(TOPIC_ID, 0)], rules()).values())
    back = only(replicas_online(image, 1, 11, [(TOPIC_ID, 0)], rules()))
    assert (back.leader, back.isr, back.offline) == (1, (1,), ())


def test_a_replica_that_lost_its_directory_does_not_lead_because_it_has_a_log_now() -> None:
    image = cluster(partition(leader=NO_LEADER, isr=(), last_known_leader=1, offline=(1,), emptied=(1,)))
    back = only(replicas_online(image, 1, 11, [(TOPIC_ID, 0)], rules()))
    assert (back.leader, back.isr, back.offline) == (NO_LEADER, (), ())


def test_telling_it_twice_or_of_what_is_not_there_changes_nothing() -> None:
    image = cluster(partition(isr=(2, 3), offline=(1,)), partition((2, 3)))
    there = [(TOPIC_ID, 0), (TOPIC_ID, 1), (TOPIC_ID, 5), (TopicId(b"x" * 16), 0)]
    assert replicas_offline(image, 1, 11, there, rules()) == {}
    online = cluster(partition(), partition((2, 3)))
    assert replicas_online(online, 1, 11, there, rules()) == {}


@pytest.mark.parametrize(("broker", "epoch"), [(1, 10), (1, 12), (9, 1)])
def test_a_broker_that_is_not_the_one_we_know_changes_nothing(broker: int, epoch: int) -> None:
    with pytest.raises(ApiError) as refused:
        replicas_offline(cluster(partition()), broker, epoch, [(TOPIC_ID, 0)], rules())
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
