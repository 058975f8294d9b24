"""Kept bytes are what encoding the whole answer would give, in every version, and never outlive a change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.broker.authorized_operations import NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.encoded_topics import EncodedTopics, Topic, _describe
from ottla.common.errors import ErrorCode
from ottla.common.random_ids import random_topic_id
from ottla.common.steps import to_the_end
from ottla.metadata.image import ClusterImage, TopicImage, initial_partition, with_topics, without_topics
from ottla.protocol import codec
from ottla.protocol.messages import MetadataResponse


def topic(name: str, partitions: int) -> TopicImage:
    return TopicImage(name, random_topic_id(), (initial_partition((1, 2), 3),) * partitions)


def frame() -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=2, rack="r")],
        cluster_id="cluster",
        controller_id=1,
        cluster_authorized_operations=5,
    )


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("with_operations", [False, True])
def test_the_bytes_are_those_of_the_whole_message(version: int, with_operations: bool) -> None:
    # 200 topics: a length that takes two bytes in flexible versions.
    images = [topic(f"t{number}", number % 3 + 1) for number in range(200)]
    failed = MetadataResponse.MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="gone")
    image, encoded = with_topics(ClusterImage("cluster"), images), EncodedTopics()
    operations = TOPIC_OPERATIONS if with_operations else NOT_ASKED
    expected = frame()
    for number in (0, 1, 200):
        expected.topics = [*(to_the_end(_describe(one, operations)) for one in images[:number]), failed]
        failed.topic_authorized_operations = operations
        for _ in range(2):  # made, then kept
            encoded.follow(image.topics)
            given: list[TopicImage | Topic] = [*images[:number], failed]
            found = to_the_end(encoded.response(frame(), given, version, with_operations=with_operations))
            assert found == codec.encode(expected, version)


def test_a_changed_topic_is_encoded_anew_and_a_deleted_one_is_forgotten() -> None:
    first = topic("t", 1)
    image, encoded = with_topics(ClusterImage("cluster"), [first]), EncodedTopics()
    encoded.follow(image.topics)
    before = to_the_end(encoded.response(frame(), [first], 12, with_operations=False))
    second = replace(first, partitions=first.partitions * 2)
    image = with_topics(image, [second])
    encoded.follow(image.topics)
    after = to_the_end(encoded.response(frame(), [second], 12, with_operations=False))
    assert len(after) > len(before)
    encoded.follow(without_topics(image, ["t"]).topics)
    assert encoded._kept == {}
