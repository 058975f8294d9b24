"""Where replicas go: even, on different racks, the same for the same start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.controller.placement import Placement, placed, placement_of
from ottla.controller.topic_plan import NewPartitions, NewTopic, plan_partitions, plan_topic
from ottla.metadata.image import Registration, TopicImage
from tests.controller.cluster import cluster, without

SIX = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
UNEVEN = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}


def placement(brokers: int = 3, racks: Mapping[int, str] | None = None, **other: object) -> Placement:
    ids = sorted(racks) if racks else range(1, brokers + 1)
    return replace(Placement(list(ids), 1, 1, racks or {}), **other)  # type: ignore[arg-type]


def plan(topic: NewTopic, where: Placement) -> TopicImage:
    return plan_topic(topic, TopicId(bytes(16)), {}, where)


@pytest.mark.parametrize("start", range(7))
@pytest.mark.parametrize("racks", [SIX, UNEVEN, {}])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_leaders_are_spread_and_racks_are_not_shared(start: int, racks: Mapping[int, str], factor: int) -> None:
    where = placement(5, racks, start=start)
    partitions = placed(60, factor, where)
    leaders = Counter(partition.leader for partition in partitions)
    assert max(leaders.values()) - min(leaders.values()) <= 1
    assert len(leaders) == len(where.brokers)
    for partition in partitions:
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas
        assert len(set(partition.replicas)) == factor
        assert len({racks.get(replica, replica) for replica in partition.replicas}) == factor


def test_replicas_are_even_too_where_racks_are() -> None:
    for racks in (SIX, {}):
        where = placement(6, racks)
        counts = Counter(replica for partition in placed(60, 3, where) for replica in partition.replicas)
        assert max(counts.values()) - min(counts.values()) <= 6, counts


def test_two_brokers_do_not_share_all_their_partitions() -> None:
    partners = {partition.replicas[1] for partition in placed(60, 2, placement(5)) if partition.leader == 1}
    assert partners == {2, 3, 4, 5}


def test_more_replicas_than_racks_share_them_evenly() -> None:
    for partition in placed(24, 4, placement(racks=SIX)):
        shared = Counter(SIX[replica] for replica in partition.replicas)
        assert sorted(shared.values()) == [1, 1, 2]


def test_the_same_start_gives_the_same_places_and_another_one_others() -> None:
    assert placed(9, 2, placement()) == placed(9, 2, placement())
    assert placed(1, 2, placement(start=1)) != placed(1, 2, placement())


def test_who_is_away_gets_replicas_last_and_leads_nothing() -> None:
    where = placement(4, away={2})
    for partition in placed(12, 3, where):
        assert 2 not in partition.replicas
    for partition in placed(12, 4, where):
        assert partition.leader != 2
        assert set(partition.replicas) - set(partition.isr) == {2}


@pytest.mark.parametrize(("factor", "away"), [(4, ()), (1, (1, 2, 3))])
def test_too_many_replicas_or_nobody_there(factor: int, away: tuple[int, ...]) -> None:
    with pytest.raises(ApiError) as refused:
        plan(NewTopic("x", 1, factor), placement(away=away))
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_by_hand() -> None:
    topic = plan(NewTopic("x", assignments=[(1, (2, 3)), (0, (3, 1))]), placement(away={3}))
    assert [(known.replicas, known.isr, known.leader) for known in topic.partitions] == [
        ((3, 1), (1,), 1),
        ((2, 3), (2,), 2),
    ]


@pytest.mark.parametrize("assignment", [(), (1, 1), (1, 9), (2, 1), (3,)])
def test_by_hand_refused(assignment: tuple[int, ...]) -> None:
    with pytest.raises(ApiError) as refused:
        plan(NewTopic("x", assignments=[(0, (1,)), (1, assignment)]), placement(away={3}))
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_more_partitions_go_on_where_the_topic_began() -> None:
    where = placement(start=1)
    whole, first = plan(NewTopic("x", 7, 2), where), plan(NewTopic("x", 2, 2), where)
    later = plan_partitions(NewPartitions("x", 7), first, replace(where, start=5))
    assert later.partitions[:2] == first.partitions
    leaders = Counter(known.leader for known in later.partitions)
    assert sorted(leaders.values()) == [2, 2, 3]
    assert [known.leader for known in later.partitions] == [known.leader for known in whole.partitions]


def test_more_partitions_of_a_topic_on_the_move_have_as_many_replicas_as_it_will() -> None:
    topic = plan(NewTopic("x", 1, 2), placement())
    moving = replace(topic.partitions[0], replicas=(1, 2, 3), adding=(2,), removing=(3,))
    grown = plan_partitions(NewPartitions("x", 2), replace(topic, partitions=(moving,)), placement())
    assert len(grown.partitions[1].replicas) == 2


def test_what_the_image_says_of_the_brokers() -> None:
    stopping = {2: Registration(12, is_active=True, is_stopping=True)}
    image = without(cluster(brokers=(1, 2, 3, 4), racks={1: "a", 3: "b"}, registrations=stopping), 4)
    where = placement_of(image, default_partitions=2, default_replication_factor=3, start=5)
    assert where == Placement([1, 2, 3, 4], 2, 3, {1: "a", 3: "b"}, frozenset({2, 4}), 5)


def test_the_rack_of_a_broker_that_is_away_counts() -> None:
    """The store remembers it: else the one that is away would be taken for a rack of its own."""
    away = Registration(13, is_active=False, rack="a")
    image = cluster(brokers=(1, 2), racks={1: "a", 2: "b"}, registrations={3: away})
    placement = placement_of(image, default_partitions=1, default_replication_factor=2, start=0)
    assert placement.racks == {1: "a", 2: "b", 3: "a"}
    for partition in placed(6, 2, placement):
        assert len({placement.racks[replica] for replica in partition.replicas}) == 2
