"""Topics as they stand in a Metadata answer, encoded once per version and kept until the topic changes.

Every client polls Metadata, and one topic of 2,000 partitions takes 9 ms to build and encode: a thousand clients would
keep the broker busy with nothing else. The bytes of a topic do not depend on what else is in the answer, so an answer
is a head, the kept bytes of its topics, and a tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ottla.broker.authorized_operations import NOT_ASKED, TOPIC_OPERATIONS
from ottla.common.steps import Steps, each
from ottla.metadata.image import PartitionImage, TopicImage
from ottla.protocol import codec
from ottla.protocol.messages import MetadataResponse

Topic = MetadataResponse.MetadataResponseTopic
_FIRST_FLEXIBLE = 9


class EncodedTopics:
    def __init__(self) -> None:
        # Topic name -> the image it was made of, and its bytes by (version, with operations).
        self._kept: dict[str, tuple[TopicImage, dict[tuple[int, bool], bytes]]] = {}
        self._topics: Mapping[str, TopicImage] = {}

    def follow(self, topics: Mapping[str, TopicImage]) -> None:
        """Forget what belongs to topics that are not there any more. Call it before each answer."""
        if self._topics is not topics:
            self._topics = topics
            self._kept = {name: kept for name, kept in self._kept.items() if topics.get(name) is kept[0]}

    def response(
        self,
        frame: MetadataResponse,
        topics: Sequence[TopicImage | Topic],
        version: int,
        *,
        with_operations: bool,
        allowed: Mapping[str, int] | None = None,
    ) -> Steps[bytearray]:
        """`frame` with these topics, encoded. `allowed`: the operations of whoever asks, by topic, if not all of
        them; such topics are not kept."""
        body = codec.encode(frame, version)
        tail = bytes(body[len(body) - _tail_size(version) :])
        del body[len(body) - _tail_size(version) - (1 if version >= _FIRST_FLEXIBLE else 4) :]
        if version >= _FIRST_FLEXIBLE:
            codec.write_uvarint(body, len(topics) + 1)
        else:
            body += len(topics).to_bytes(4, "big")
        for topic in topics:
            if allowed is not None:
                described = topic
                if isinstance(topic, TopicImage):
                    described = yield from _describe(topic, allowed[topic.name])
                assert isinstance(described, codec.Message)
                described.topic_authorized_operations = allowed[topic.name or ""]
                body += yield from _encode(described, version)
                continue
            known = self._encoded(topic).get((version, with_operations))
            body += known if known is not None else (yield from self._encode(topic, version, with_operations))
            yield None
        body += tail
        return body

    def _encoded(self, topic: TopicImage | Topic) -> dict[tuple[int, bool], bytes]:
        """What is kept of a topic as it is now, by version and whether operations were asked for."""
        if isinstance(topic, codec.Message):
            return {}
        image, encoded = self._kept.get(topic.name, (None, {}))
        if image is not topic:
            encoded = {}
            if self._topics.get(topic.name) is topic:
                self._kept[topic.name] = (topic, encoded)
        return encoded

    def _encode(self, topic: TopicImage | Topic, version: int, with_operations: bool) -> Steps[bytes]:
        operations = TOPIC_OPERATIONS if with_operations else NOT_ASKED
        if isinstance(topic, codec.Message):
            topic.topic_authorized_operations = operations
            return (yield from _encode(topic, version))
        encoded = self._encoded(topic)
        described = yield from _describe(topic, operations)
        found = encoded[version, with_operations] = yield from _encode(described, version)
        return found


def _tail_size(version: int) -> int:
    """Bytes behind the topics: cluster operations (v8-10), error code (v13), tags (flexible)."""
    return (4 if 8 <= version <= 10 else 0) + (2 if version >= 13 else 0) + (1 if version >= _FIRST_FLEXIBLE else 0)


def _encode(topic: Topic, version: int) -> Steps[bytes]:
    """The bytes of one topic, cut out of an answer that has nothing else."""
    alone = yield from codec.encode_in_steps(MetadataResponse(topics=[topic]), version)
    empty = _empty_size(version)
    tail = _tail_size(version)
    return bytes(alone[empty - tail : len(alone) - tail])


@cache
def _empty_size(version: int) -> int:
    return len(codec.encode(MetadataResponse(), version))


def _describe(topic: TopicImage, operations: int) -> Steps[Topic]:
    partitions = yield from each(enumerate(topic.partitions), _partition)
    return MetadataResponse.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def _partition(numbered: tuple[int, PartitionImage]) -> MetadataResponse.MetadataResponsePartition:
    index, partition = numbered
    return MetadataResponse.MetadataResponsePartition(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
    )
