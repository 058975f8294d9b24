"""A topic is named by its name or by its id, and neither opens a door in the place of the other: a name of sixteen
letters has the size of an id, and sixteen bytes of an id may stand where a name is expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic

from ottla.broker.partitions.partition_table import Partitions
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicId
from ottla.metadata.image import TopicImage, initial_partition
from ottla.protocol import codec
from ottla.protocol.framing import flexible_from
from ottla.protocol.messages import DeleteTopicsRequest, MetadataRequest
from ottla.testing import Broker
from tests.security.test_acls import acl, create, logged_in, secured, settings
from tests.support.raw_client import RawClient, batch_of, produce_request, request_frame

# Of sixteen bytes, as an id.
NAME = "orders-of-europe"
STAND_IN = "sixteen-letters-"


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Whatever no ACL is about is open to everybody, and `NAME` is ada's alone."""
    with secured(**{"allow.everyone.if.no.acl.found": "true"}) as running:
        admin = AdminClient(settings(running, "admin"))
        admin.create_topics([NewTopic(NAME, 1)])[NAME].result(30)
        create(admin, acl(AclOperation.ALL, NAME))
        yield running


def _id(broker: Broker) -> bytes:
    with logged_in(broker, "admin") as client:
        (topic,) = client.call(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=NAME)]), 12).topics
        return bytes(topic.topic_id)


def _written(broker: Broker) -> list[bytes | None]:
    with logged_in(broker, "admin") as client:
        return [record.value for record in client.read_all(NAME)]


@pytest.mark.parametrize("times", [1, 3], ids=["once", "again and again"])
def test_nobody_writes_by_a_name_in_the_place_of_an_id(broker: Broker, times: int) -> None:
    with logged_in(broker, "ada") as ada, logged_in(broker, "bob") as bob:
        for _ in range(times):
            line = bob.produce(NAME.encode(), batch_of(b"bob's"), version=13)
            assert line.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert ada.produce(NAME.encode(), batch_of(b"ada's"), version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert bob.produce(_id(broker), batch_of(b"x"), version=13).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert ada.produce(_id(broker), batch_of(b"by its id"), version=13).error_code == 0
    assert _written(broker) == [b"by its id"]


def test_nobody_reads_by_a_name_in_the_place_of_an_id(broker: Broker) -> None:
    with logged_in(broker, "ada") as ada, logged_in(broker, "bob") as bob:
        assert ada.produce(NAME, batch_of(b"secret")).error_code == 0
        line = bob.fetch(NAME.encode(), version=13, max_wait_ms=0)
        assert (line.error_code, line.records or b"") == (ErrorCode.UNKNOWN_TOPIC_ID, b"")
        line = bob.fetch(_id(broker), version=13, max_wait_ms=0)
        assert (line.error_code, line.records or b"") == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")
        assert ada.fetch(_id(broker), version=13, max_wait_ms=0).records


@pytest.mark.parametrize("version", [8, 12])
def test_nobody_writes_by_an_id_in_the_place_of_a_name(broker: Broker, version: int) -> None:
    with logged_in(broker, "bob") as bob:
        for _ in range(3):
            assert _produce_bytes(bob, _id(broker), version) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert _written(broker) == []


def _produce_bytes(client: RawClient, name: bytes, version: int) -> int:
    """A produce whose topic's name is these bytes, which need not be text."""
    frame = request_frame(produce_request(STAND_IN, batch_of(b"bob's")), version)
    assert frame.count(STAND_IN.encode()) == 1
    client.send_frame(frame.replace(STAND_IN.encode(), name))
    answer = client.receive_frame().replace(name, STAND_IN.encode())
    is_flexible = version >= flexible_from("ProduceRequest")
    message: Any = codec.decode_from("ProduceResponse", version, answer, 5 if is_flexible else 4)[0]
    ((line,),) = [topic.partition_responses for topic in message.responses]
    return int(line.error_code)


def test_a_topic_is_not_deleted_by_a_name_in_the_place_of_an_id_nor_by_both(broker: Broker) -> None:
    named = DeleteTopicsRequest.DeleteTopicState
    topics = [named(name=None, topic_id=NAME.encode()), named(name="free", topic_id=_id(broker))]
    with logged_in(broker, "bob") as bob:
        answer = bob.call(DeleteTopicsRequest(topics=topics, timeout_ms=30_000), 6)
        assert {one.error_code for one in answer.responses} == {
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.INVALID_REQUEST,
        }
        asked = MetadataRequest.MetadataRequestTopic(name="free", topic_id=_id(broker))
        (told,) = bob.call(MetadataRequest(topics=[asked]), 12).topics
        assert (told.error_code, told.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert _written(broker) == []


def test_two_topics_of_which_one_is_called_as_the_other_is_numbered_are_kept_apart() -> None:
    partitions = Partitions()
    first = TopicImage(NAME, TopicId(bytes(range(16))), (initial_partition((2, 1)),))
    second = TopicImage("second", TopicId(NAME.encode()), (initial_partition((3, 1)),))
    partitions.add_topic(first, {})
    partitions.add_topic(second, {}, offline=[0])
    key = NAME.encode()
    assert (partitions.by_name.name_of(key), partitions.by_id.name_of(key)) == (NAME, "second")
    codes = [table.error_for(key, 0) for table in (partitions.by_name, partitions.by_id)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]
    partitions.remove_topic(second)
    assert not partitions.by_id.knows(key) and partitions.by_name.knows(key)
    assert partitions.by_id.error_for(key, 0) is ErrorCode.UNKNOWN_TOPIC_ID
