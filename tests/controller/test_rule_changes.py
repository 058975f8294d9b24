"""min.insync.replicas changes under way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.controller.broker_changes import broker_gone, reconcile
from ottla.controller.rule_changes import min_insync_changed
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage, TopicImage
from tests.controller.cluster import cluster, only, partition, rules


def test_nobody_is_eligible_any_more_who_may_miss_what_is_committed_from_now_on() -> None:
    image = cluster(partition(isr=(1,), elr=(2, 3)))
    after = only(min_insync_changed(image, image.topics.values(), rules(1)))
    assert (after.isr, after.elr, after.leader_epoch, after.partition_epoch) == ((1,), (), 5, 8)


def test_who_is_eligible_stays_so_while_too_few_are_in_sync() -> None:
    image = cluster(partition(isr=(1,), elr=(2,)))
    assert only(min_insync_changed(image, image.topics.values(), rules(3))).elr == (2,)


def test_a_leader_that_does_not_know_it_cannot_change_the_isr() -> None:
    image = cluster(partition(), partition(isr=(1,)), min_insync=1)
    changed = min_insync_changed(image, image.topics.values(), rules(2))["orders"]
    assert [known.partition_epoch for known in changed.partitions] == [8, 8]
    assert [known.leader_epoch for known in changed.partitions] == [5, 5]


def test_what_is_in_force_already_is_no_change() -> None:
    image = cluster(partition())
    assert min_insync_changed(image, image.topics.values(), rules(2)) == {}


@pytest.mark.parametrize("before", [1, 3, None])
def test_what_was_set_comes_into_force_when_the_controller_looks(before: int | None) -> None:
    (topic,) = cluster(partition()).topics.values()
    changes = reconcile(cluster_with(replace(topic, min_insync=before)), rules(2))
    assert changes.topics["orders"].min_insync == 2
    assert reconcile(cluster_with(changes.topics["orders"]), rules(2)).topics == {}


def test_until_then_the_value_in_force_decides_who_is_eligible() -> None:
    """Lowered, and the leader dies before anybody knows: it has committed nothing alone."""
    image = cluster(partition(isr=(1,), elr=(2,)), min_insync=2)
    after = broker_gone(image, 1, rules(1)).topics["orders"]
    assert (after.partitions[0].leader, after.min_insync) == (2, 1)


def test_it_is_kept_in_the_node_of_the_topic() -> None:
    (topic,) = cluster(partition(), min_insync=3).topics.values()
    assert nodes.decode_topic("orders", nodes.encode_topic(topic)) == topic
    alone = replace(topic, min_insync=None)
    assert b"min_insync" not in nodes.encode_topic(alone)
    assert nodes.decode_topic("orders", nodes.encode_topic(alone)) == alone


def cluster_with(topic: TopicImage) -> ClusterImage:
    return images.with_topics(cluster(), [topic])
