"""Who leads: the order of `elections.py`, case by case."""

from __future__ import annotations

import pytest

from ottla.controller.elections import elect
from ottla.metadata.image import NO_LEADER, PartitionImage
from tests.controller.cluster import partition

CASES = {
    "who leads and is in sync goes on": (partition(leader=2), {1, 2, 3}, (2, (1, 2, 3), ())),
    "the first in sync, by the replicas": (partition((3, 1, 2), (1, 2), leader=-1), {1, 2, 3}, (1, (1, 2), ())),
    "the first of these that is live": (partition((3, 1, 2), (1, 2), leader=-1), {2, 3}, (2, (1, 2), ())),
    "none in sync: an eligible one, alone": (partition(isr=(), elr=(2, 3)), {3}, (3, (3,), (2,))),
    "who is neither waits for those who are": (partition(isr=(), elr=(2,)), {1, 3}, (-1, (), (2,))),
    "none of both: the last known leader": (partition(isr=(), last_known_leader=3), {1, 3}, (3, (3,), ())),
    "which must be live": (partition(isr=(), last_known_leader=3), {1, 2}, (-1, (), ())),
    "and waits for an eligible one": (partition(isr=(), elr=(2,), last_known_leader=3), {1, 3}, (-1, (), (2,))),
}
UNCLEAN_CASES = {
    "any replica, alone": (partition(isr=(), elr=(2,)), {1, 3}, (1, (1,), ())),
    "an eligible one if there is one": (partition(isr=(), elr=(3,)), {1, 3}, (3, (3,), ())),
    "the last known leader if there is none": (partition(isr=(), last_known_leader=3), {1, 3}, (3, (3,), ())),
    "nobody if nobody is live": (partition(isr=()), set(), (-1, (), ())),
}


@pytest.mark.parametrize("case", CASES)
def test_who_is_elected(case: str) -> None:
    check(*CASES[case], unclean=False)


@pytest.mark.parametrize("case", UNCLEAN_CASES)
def test_who_is_elected_if_unclean_election_is_allowed(case: str) -> None:
    check(*UNCLEAN_CASES[case], unclean=True)


def check(before: PartitionImage, live: set[int], expected: object, *, unclean: bool) -> None:
    after = elect(before, live.__contains__, unclean=unclean)
    assert (after.leader, after.isr, after.elr) == expected
    is_new = after.leader != before.leader
    assert (after.leader_epoch, after.partition_epoch) == (5 + is_new, 7 + is_new)


def test_a_leader_ends_what_was_remembered_of_the_last_one() -> None:
    assert (
        elect(partition((1, 2), (), last_known_leader=2), {2}.__contains__, unclean=False).last_known_leader
        == NO_LEADER
    )


@pytest.mark.parametrize(("isr", "live", "expected"), [((1, 2), {1, 2}, 1), ((2, 3), {1, 2, 3}, 2), ((1, 2), {2}, 2)])
def test_the_first_replica_is_preferred_if_it_is_in_sync_and_live(
    isr: tuple[int, ...], live: set[int], expected: int
) -> None:
    assert (
        elect(partition((1, 2, 3), isr, leader=2), live.__contains__, unclean=False, prefer_first=True).leader
        == expected
    )
