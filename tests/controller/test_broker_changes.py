"""Brokers come and go: what happens to the partitions they are in, and to their registrations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.controller.broker_changes import (
    Changes,
    broker_gone,
    controlled_shutdown,
    next_registration,
    reconcile,
)
from ottla.metadata.image import NO_LEADER, ClusterImage, Registration
from tests.controller.cluster import applied, cluster, only, partition, registered, rules, without

NOTHING = Changes({}, {})


def test_a_broker_that_is_gone_is_fenced_and_others_lead() -> None:
    changes = broker_gone(cluster(partition(), partition((2, 1, 3))), 1, rules())
    first, second = changes.topics["orders"].partitions
    assert (first.leader, first.leader_epoch, first.partition_epoch, first.isr) == (2, 6, 8, (2, 3))
    assert (second.leader, second.leader_epoch, second.partition_epoch, second.isr) == (2, 5, 8, (2, 3))
    assert changes.registrations == {1: Registration(11, is_active=False)}


def test_a_partition_without_the_broker_is_left_alone() -> None:
    image = cluster(partition((2, 3)), partition((1, 2)))
    after = broker_gone(image, 1, rules()).topics["orders"]
    assert after.partitions[0] is image.topics["orders"].partitions[0]


@pytest.mark.parametrize(
    ("isr", "min_insync", "elr"),
    [
        ((1, 2, 3), 2, ()),  # two remain: records are committed without it from now on
        ((1, 2), 2, (1,)),  # one remains, which commits nothing
        ((1, 2), 1, ()),
        ((1, 2, 3), 3, (1,)),
        ((1, 2, 3), 5, (1,)),  # never more than there are replicas
    ],
)
def test_it_is_eligible_where_too_few_remain_in_sync(
    isr: tuple[int, ...], min_insync: int, elr: tuple[int, ...]
) -> None:
    after = only(broker_gone(cluster(partition(isr=isr)), 1, rules(min_insync)).topics)
    assert after.isr == isr[1:]
    assert after.elr == elr


def test_the_last_in_sync_is_remembered_and_leads_again() -> None:
    image = cluster(partition(isr=(1,), elr=()))
    image = applied(image, broker_gone(image, 1, rules()))
    gone = only(image.topics)
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_leader) == (NO_LEADER, (), (1,), 1)
    assert (gone.leader_epoch, gone.partition_epoch) == (6, 8)
    back = only(reconcile(registered(image, 1), rules()).topics)
    assert (back.leader, back.isr, back.elr, back.last_known_leader) == (1, (1,), (), NO_LEADER)
    assert (back.leader_epoch, back.partition_epoch) == (7, 9)


def test_an_eligible_replica_leads_when_the_last_in_sync_is_gone() -> None:
    after = only(broker_gone(cluster(partition(isr=(1,), elr=(3,))), 1, rules()).topics)
    assert (after.leader, after.isr, after.elr) == (3, (3,), (1,))


def test_unclean_election_takes_anybody() -> None:
    after = only(broker_gone(cluster(partition(isr=(1,))), 1, rules(unclean=True)).topics)
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())


def test_who_registers_anew_is_in_sync_nowhere_by_what_it_was() -> None:
    image = registered(cluster(partition(), partition((2, 1, 3))), 1)
    changes = reconcile(image, rules())
    first, second = changes.topics["orders"].partitions
    assert (first.leader, first.isr, second.isr) == (2, (2, 3), (2, 3))
    assert changes.registrations == {1: Registration(12, is_active=True)}


def test_the_same_leader_under_a_new_registration_leads_in_a_new_epoch() -> None:
    image = registered(cluster(partition((1,))), 1)
    after = only(reconcile(image, rules()).topics)
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (1, (1,), 6, 8)


def test_unclean_election_is_not_needed_for_the_one_that_comes_back() -> None:
    image = registered(cluster(partition(isr=(1,))), 1)
    assert only(reconcile(image, rules(unclean=True)).topics).leader == 1


def test_whose_records_may_be_lost_is_not_eligible_any_more() -> None:
    image = registered(without(cluster(partition(isr=(), elr=(1, 2))), 2), 1, may_have_lost_records=True)
    changes = reconcile(image, rules())
    after = only(changes.topics)
    assert (after.leader, after.elr) == (NO_LEADER, (2,))
    assert changes.registrations[1] == Registration(12, is_active=True), "dealt with, so the mark is gone"


def test_the_last_one_leads_again_even_if_records_may_be_lost() -> None:
    image = registered(cluster(partition(isr=(1,))), 1, may_have_lost_records=True)
    after = only(reconcile(image, rules()).topics)
    assert (after.leader, after.isr, after.elr, after.leader_epoch) == (1, (1,), (), 6)


def test_the_last_one_leads_again_also_if_it_never_led() -> None:
    """Seed 57810: who led was moved away, and the last eligible one lost records."""
    image = registered(cluster(partition((3, 2), (), elr=(2,)), brokers=(2, 3)), 2, may_have_lost_records=True)
    after = only(reconcile(image, rules()).topics)
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())


def test_an_eligible_one_goes_before_a_last_leader_whose_records_may_be_lost() -> None:
    image = registered(cluster(partition(isr=(1,), elr=(2,))), 1, may_have_lost_records=True)
    after = only(reconcile(image, rules()).topics)
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())


def test_a_loss_that_nobody_has_dealt_with_is_not_forgotten() -> None:
    well = Registration(0, is_active=False, directories=("one",))
    lost = next_registration(None, replace(well, may_have_lost_records=True))
    assert lost == Registration(1, is_active=False, may_have_lost_records=True, directories=("one",))
    assert next_registration(lost, well).may_have_lost_records
    taken_in = replace(lost, is_active=True)
    assert next_registration(taken_in, well) == Registration(2, is_active=False, directories=("one",))


def test_controlled_shutdown_moves_leaders_and_leaves_the_isr_where_others_remain() -> None:
    image = cluster(partition(), partition((2, 1), (1,)))
    changes = controlled_shutdown(image, 1, rules())
    moved, alone = changes.topics["orders"].partitions
    assert (moved.leader, moved.isr, moved.leader_epoch) == (2, (2, 3), 6)
    assert alone is image.topics["orders"].partitions[1]
    assert changes.registrations == {1: Registration(11, is_active=True, is_stopping=True)}
    image = applied(image, changes)
    assert [partition.leader for partition in image.topics["orders"].partitions] == [2, 1]
    assert controlled_shutdown(image, 1, rules()) == NOTHING


def test_two_that_stop_leave_a_leader_until_both_are_gone() -> None:
    image = cluster(partition((1, 2)))
    image = applied(image, controlled_shutdown(image, 1, rules()))
    image = applied(image, controlled_shutdown(image, 2, rules()))
    assert only(image.topics).leader == 2
    image = applied(image, broker_gone(image, 2, rules()))
    assert only(image.topics).leader == NO_LEADER, "the other one has left the ISR, and stops"
    assert only(image.topics).elr == (1, 2)


def test_who_has_stopped_and_comes_back_is_not_stopping() -> None:
    image = cluster(partition())
    image = applied(image, controlled_shutdown(image, 1, rules()))
    image = applied(image, broker_gone(image, 1, rules()))
    image = applied(image, reconcile(registered(image, 1), rules()))
    assert image.registrations[1] == Registration(12, is_active=True)


@pytest.mark.parametrize(
    "undone",
    [
        without(cluster(partition()), 1),  # gone, not fenced
        without(cluster(partition()), 1, 2, 3),
        registered(cluster(partition()), 1),  # back before anybody saw that it was gone
        registered(cluster(partition(isr=(1,))), 1, may_have_lost_records=True),
        cluster(partition(), registrations={1: Registration(11, is_active=True, is_stopping=True)}),
        cluster(partition(isr=(), elr=(3,))),  # fenced, nobody elected
        cluster(partition(elr=(2,), isr=(1, 3))),  # min.insync.replicas was lowered
        cluster(partition((1, 2, 3), adding=(3,), removing=(1,))),  # complete
        without(cluster(partition(leader=1, isr=(2, 3)), partition((1,))), 1),
        # An eligible replica leads, and is all that a reassignment waited for.
        cluster(partition((2, 3), (), elr=(2,), removing=(3,))),
        cluster(partition((1, 2, 3), (1, 2), removing=(3,), offline=(3,))),
    ],
)
def test_a_new_controller_does_what_was_left_undone_once(undone: ClusterImage) -> None:
    first = reconcile(undone, rules())
    assert first != NOTHING
    image = applied(undone, first)
    assert reconcile(image, rules()) == NOTHING
    for known in image.topics["orders"].partitions:
        assert known.leader == NO_LEADER or known.leader in image.brokers
        assert all(member in image.brokers for member in known.isr)


def test_a_healthy_cluster_and_a_single_node_have_nothing_to_do() -> None:
    assert reconcile(cluster(partition()), rules()) == NOTHING
    single = replace(cluster(partition((1,)), brokers=(1,)), registrations={}, present={})
    assert reconcile(single, rules()) == NOTHING


def test_partitions_that_differ_in_their_epochs_only_each_go_on_from_their_own() -> None:
    image = cluster(*(partition(leader_epoch=epoch, partition_epoch=9 * epoch) for epoch in (1, 5, 7)))
    after = broker_gone(image, 1, rules()).topics["orders"].partitions
    assert [(known.leader, known.leader_epoch, known.partition_epoch) for known in after] == [
        (2, 2, 10),
        (2, 6, 46),
        (2, 8, 64),
    ]
