"""What is written to the store is read back as the same image."""

from __future__ import annotations

from ottla.common.random_ids import random_topic_id
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage, ConfigKind, TopicImage, initial_partition


def test_a_topic_survives_being_stored() -> None:
    partitions = (initial_partition((1, 2)), initial_partition((2, 1), leader_epoch=7))
    topic = TopicImage("orders", random_topic_id(), partitions, {"retention.ms": "1000"})
    assert nodes.decode_topic("orders", nodes.encode_topic(topic)) == topic


def test_a_topic_of_many_partitions_is_small() -> None:
    topic = TopicImage("t", random_topic_id(), (initial_partition((1,)),) * 10_000)
    data = nodes.encode_topic(topic)
    assert len(data) < 100_000
    assert nodes.decode_topic("t", data) == topic


def test_an_image_is_built_from_its_nodes() -> None:
    topic = TopicImage("t", random_topic_id(), (initial_partition((1,)),))
    image = nodes.decode_image(
        nodes.encode({"cluster_id": "c"}),
        [("t", nodes.encode_topic(topic))],
        [("default", b'{"a":"1"}'), ("1", b'{"b":"2"}')],
        [(nodes.configs_path(ConfigKind.GROUP, "g/..ü").rsplit("/", 1)[1], b'{"c":"3"}')],
        nodes.encode({"levels": {"group.version": 1}, "epoch": 4}),
        nodes.encode({"next": 2000}),
    )
    assert image == ClusterImage(
        cluster_id="c",
        topics={"t": topic},
        topics_by_id={topic.id: topic},
        broker_configs={"": {"a": "1"}, "1": {"b": "2"}},
        group_configs={"g/..ü": {"c": "3"}},
        features={"group.version": 1},
        features_epoch=4,
        next_producer_id=2000,
    )


def test_changes_make_new_images_and_leave_the_old_ones_alone() -> None:
    first = ClusterImage("c")
    topic = TopicImage("t", random_topic_id(), (initial_partition((1,)),))
    other = TopicImage("u", random_topic_id(), (initial_partition((1,)),) * 2)
    second = images.with_topics(first, [topic, other])
    third = images.without_topics(second, ["t"])
    assert dict(first.topics) == {}
    assert second.topics_by_id == {topic.id: topic, other.id: other}
    assert second.partition_count == 3
    assert third.topics == {"u": other}
    assert third.topics["u"] is second.topics["u"]
    assert third.topics_by_id == {other.id: other}


def test_a_topic_that_was_made_again_is_found_only_by_its_new_id() -> None:
    old = TopicImage("t", random_topic_id(), (initial_partition((1,)),))
    new = TopicImage("t", random_topic_id(), (initial_partition((1,)),))
    image = images.with_topics(images.with_topics(ClusterImage("c"), [old]), [new])
    assert image.topics_by_id == {new.id: new}


def test_configs_without_entries_are_not_kept() -> None:
    image = images.with_configs(ClusterImage("c"), ConfigKind.BROKER, "1", {"a": "b"})
    image = images.with_configs(image, ConfigKind.GROUP, "g", {"c": "d"})
    assert image.broker_configs == {"1": {"a": "b"}}
    assert images.with_configs(image, ConfigKind.BROKER, "1", {}).broker_configs == {}
    assert images.with_configs(image, ConfigKind.GROUP, "g", {}).group_configs == {}
