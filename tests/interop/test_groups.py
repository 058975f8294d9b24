"""Groups of real consumers: confluent-kafka in both protocols, kafka-python and aiokafka, alone and mixed."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Broker
from tests.support.group_members import (
    AioKafkaMember,
    ConfluentMember,
    KafkaPythonMember,
    Member,
    Members,
    Partition,
    eventually,
)
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = pytest.mark.xdist_group("group-members")

_NUMBERS = itertools.count()
PARTITIONS = 6


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def members() -> Iterator[Members]:
    started = Members()
    yield started
    started.stop_all()


@pytest.fixture
def group() -> str:
    return f"group-{next(_NUMBERS)}"


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders-{next(_NUMBERS)}"
    broker.create_topic(name, PARTITIONS)
    return name


def produce(broker: Broker, topic: str, first: int, count: int) -> list[bytes]:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1})
    values = [b"%d" % number for number in range(first, first + count)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(20) == 0
    return values


def shares(*members: Member) -> list[int]:
    return [len(one.owned) for one in members]


def wait_for_shares(expected: list[int], *members: Member) -> None:
    """Each has its number of partitions, and no partition is with two of them."""

    def is_so() -> bool:
        owned: list[Partition] = [one for member in members for one in member.owned]
        return shares(*members) == expected and len(set(owned)) == len(owned)

    eventually(is_so, lambda: f"partitions are {[sorted(one.owned) for one in members]}, {[m.error for m in members]}")


def read_by(*members: Member) -> list[bytes]:
    return sorted((value for member in members for value in member.values), key=int)


def committed(broker: Broker, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    found = consumer.committed([TopicPartition(topic, one) for one in range(PARTITIONS)], timeout=20)
    consumer.close()
    return sum(max(0, one.offset) for one in found)


# --- sharing


def test_three_clients_share_a_group_and_take_over_from_one_another(
    broker: Broker, members: Members, group: str, topic: str
) -> None:
    where = (broker.bootstrap_servers, group, [topic])
    sent = produce(broker, topic, 0, 60)
    first = members.start(ConfluentMember, *where)
    wait_for_shares([6], first)
    second = members.start(KafkaPythonMember, *where)
    third = members.start(AioKafkaMember, *where)
    wait_for_shares([2, 2, 2], first, second, third)
    sent += produce(broker, topic, 60, 60)
    eventually(lambda: set(read_by(first, second, third)) == set(sent), lambda: len(read_by(first, second, third)))
    second.stop()
    wait_for_shares([3, 3], first, third)
    more = produce(broker, topic, 120, 60)
    eventually(lambda: set(more) <= set(read_by(first, third)), lambda: len(read_by(first, third)))
    first.stop()
    third.stop()
    assert committed(broker, group, topic) == len(sent + more)


@pytest.mark.parametrize(("kind", "options"), [(ConfluentMember, {"protocol": "consumer"}), (ConfluentMember, {})])
def test_members_of_one_kind_share_and_hand_over(
    broker: Broker, members: Members, group: str, topic: str, kind: type[Member], options: dict[str, Any]
) -> None:
    where = (broker.bootstrap_servers, group, [topic])
    started = [members.start(kind, *where, **options) for _ in range(3)]
    wait_for_shares([2, 2, 2], *started)
    sent = produce(broker, topic, 0, 120)
    eventually(lambda: read_by(*started) == sent, lambda: len(read_by(*started)))
    started[0].stop()
    wait_for_shares([3, 3], *started[1:])


def test_a_classic_group_moves_to_the_new_protocol_and_back(
    broker: Broker, members: Members, group: str, topic: str
) -> None:
    where = (broker.bootstrap_servers, group, [topic])
    old = members.start(ConfluentMember, *where, strategy="cooperative-sticky")
    wait_for_shares([6], old)
    new = members.start(ConfluentMember, *where, protocol="consumer")
    wait_for_shares([3, 3], old, new)
    sent = produce(broker, topic, 0, 60)
    eventually(lambda: read_by(old, new) == sent, lambda: read_by(old, new))
    new.stop()
    wait_for_shares([6], old)
    sent += produce(broker, topic, 60, 60)
    eventually(lambda: set(read_by(old, new)) == set(sent), lambda: len(read_by(old, new)))


# --- cooperative and static members


def test_cooperative_members_keep_what_does_not_move(broker: Broker, members: Members, group: str, topic: str) -> None:
    where = (broker.bootstrap_servers, group, [topic])
    first = members.start(ConfluentMember, *where, strategy="cooperative-sticky")
    wait_for_shares([6], first)
    second = members.start(ConfluentMember, *where, strategy="cooperative-sticky")
    wait_for_shares([3, 3], first, second)
    revoked = [partitions for what, partitions in first.events if what == "revoked"]
    assert [len(one) for one in revoked if one] == [3], "only what went to the other was taken away"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_comes_back_to_its_partitions_and_nobody_else_notices(
    broker: Broker, members: Members, group: str, topic: str, protocol: str
) -> None:
    where = (broker.bootstrap_servers, group, [topic])
    stays = members.start(ConfluentMember, *where, protocol=protocol, instance="stays")
    goes = members.start(ConfluentMember, *where, protocol=protocol, instance="goes")
    wait_for_shares([3, 3], stays, goes)
    had, before = set(goes.owned), len(stays.events)
    goes.stop()
    back = members.start(ConfluentMember, *where, protocol=protocol, instance="goes")
    eventually(lambda: back.owned == had, lambda: (had, back.owned, back.error))
    assert len(stays.events) == before


# --- patterns


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pattern_finds_topics_made_before_and_after(
    broker: Broker, members: Members, group: str, protocol: str
) -> None:
    prefix = f"log-{next(_NUMBERS)}-"
    broker.create_topic(f"{prefix}a", 1)
    broker.create_topic(f"other-{prefix}a", 1)
    member = members.start(ConfluentMember, broker.bootstrap_servers, group, [f"^{prefix}.*"], protocol=protocol)
    eventually(lambda: member.owned == {(f"{prefix}a", 0)}, lambda: (member.owned, member.error))
    broker.create_topic(f"{prefix}b", 2)
    expected = {(f"{prefix}a", 0), (f"{prefix}b", 0), (f"{prefix}b", 1)}
    eventually(lambda: member.owned == expected, lambda: (member.owned, member.error))


# --- restarts


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ConfluentMember, {"protocol": "consumer"}),
        (ConfluentMember, {}),
        (KafkaPythonMember, {}),
        (AioKafkaMember, {}),
    ],
    ids=["confluent-kafka consumer", "confluent-kafka classic", "kafka-python", "aiokafka"],
)
def test_a_group_goes_on_after_the_broker_restarts(
    members: Members, group: str, kind: type[Member], options: dict[str, Any]
) -> None:
    with Broker() as broker:
        broker.create_topic("orders", PARTITIONS)
        where = (broker.bootstrap_servers, group, ["orders"])
        sent = produce(broker, "orders", 0, 60)
        first = members.start(kind, *where, **options)
        eventually(lambda: read_by(first) == sent, lambda: (len(read_by(first)), first.error))
        first.stop()
        second = members.start(kind, *where, **options)
        wait_for_shares([6], second)
        broker.restart()
        assert committed(broker, group, "orders") == 60
        sent += produce(broker, "orders", 60, 60)
        eventually(lambda: read_by(second) == sent[60:], lambda: (len(read_by(second)), second.error))
        second.stop()
        assert committed(broker, group, "orders") == 120


# --- the log


@pytest.mark.jvm
def test_kafkas_dump_tool_reads_our_group_records(members: Members, group: str, tmp_path: Path) -> None:
    libs = require_kafka_libs()
    with Broker({"offsets.topic.num.partitions": "1"}, data_dir=tmp_path) as broker:
        broker.create_topic("orders", PARTITIONS)
        produce(broker, "orders", 0, 12)
        for protocol in ("classic", "consumer"):
            pattern = "^ord.*" if protocol == "consumer" else "orders"
            member = members.start(
                ConfluentMember, broker.bootstrap_servers, f"{group}-{protocol}", [pattern], protocol=protocol
            )
            eventually(lambda one=member: len(one.values) == 12, lambda one=member: one.values)  # type: ignore[misc]
            member.stop()
    segment = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    command = [*quick_java(), "-cp", class_path(libs), "org.apache.kafka.tools.DumpLogSegments"]
    command += ["--offsets-decoder", "--print-data-log", "--files", str(segment)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stderr
    # By their numbers: commits, classic generations, and the records of KIP-848.
    for kind, count in ((1, 12), (2, 3), (3, 2), (5, 2), (6, 1), (7, 2), (8, 2), (16, 2)):
        assert "Error at" not in outcome.stdout
        found = outcome.stdout.count(f'key: {{"type":"{kind}"')
        assert found >= count, (kind, outcome.stdout)
