"""Groups of different clients: rebalance, nothing lost or doubled, both protocols, patterns, static members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.interop.foreign.clients import AgentClient, Client, Membership, Sent
from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]
PARTITIONS = 6

# Settings under which members of different makers agree: `range` is the assignor that all of them have.
CLASSIC = {
    "java": {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.RangeAssignor"},
    "confluent": {"partition_assignment_strategy": "range"},
    "franz-go": {"protocol": "range"},
    "kafkajs": {},
}
CONSUMER = {
    "java": {"group_protocol": "consumer"},
    "confluent": {"group_protocol": "consumer"},
    "franz-go": {"protocol": "consumer"},
}
PROTOCOLS = {"classic": CLASSIC, "consumer": CONSUMER}


class Group:
    """Members of one group, each the client of that name; all of them leave at the end."""

    def __init__(self, broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> None:
        self.broker, self.clients, self.name = broker, clients, name
        self.members: dict[str, Client] = {}

    def join(self, member: str, client: str, topics: list[str], pattern: str | None = None, **settings: str) -> None:
        subject = self.clients(client)
        subject.join(self.broker.bootstrap, f"{self.name}-{member}", self.name, topics, pattern, **settings)
        self.members[member] = subject

    def leave(self, member: str) -> Membership:
        return self.members.pop(member).leave(f"{self.name}-{member}")

    def look(self) -> dict[str, Membership]:
        return {member: client.seen(f"{self.name}-{member}") for member, client in self.members.items()}

    def settle(self, total: int, within_s: float = 40.0) -> dict[str, set[tuple[str, int]]]:
        """Waits until each member owns something, and all partitions are owned once; returns who owns what."""

        def settled(found: dict[str, Membership]) -> bool:
            owned = [place for one in found.values() for place in one.assignment]
            return len(owned) == len(set(owned)) == total and all(one.assignment for one in found.values())

        found = eventually(self.look, settled, within_s)
        return {member: one.assignment for member, one in found.items()}

    def values(self) -> list[bytes]:
        return sorted(record.value or b"" for one in self.look().values() for record in one.records)


@contextmanager
def group_of(broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> Iterator[Group]:
    group = Group(broker, clients, name)
    try:
        yield group
    finally:
        for member in list(group.members):
            group.leave(member)


def numbered(first: int, count: int) -> list[Sent]:
    return [Sent(None, b"%05d" % n, partition=n % PARTITIONS) for n in range(first, first + count)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_different_clients_share_a_group_and_take_over_from_one_another(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, protocol: str
) -> None:
    topic, settings = create_topic(broker, name, PARTITIONS), PROTOCOLS[protocol]
    with group_of(broker, clients, name) as group:
        for client in settings:
            group.join(client, client, [topic], **settings[client])
        group.settle(PARTITIONS)
        clients("confluent").produce(broker.bootstrap, topic, numbered(0, 120))
        expected = [b"%05d" % n for n in range(120)]
        eventually(group.values, lambda seen: seen == expected)

        left = group.leave("java")
        assert left.error is None
        group.settle(PARTITIONS)
        clients("confluent").produce(broker.bootstrap, topic, numbered(120, 60))
        rest = [b"%05d" % n for n in range(180) if n >= 120 or b"%05d" % n not in {r.value for r in left.records}]
        eventually(group.values, lambda seen: seen == rest)
        assert all(one.error is None for one in group.look().values())


def test_a_consumer_goes_on_where_another_maker_committed(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str
) -> None:
    topic = create_topic(broker, name, PARTITIONS)
    first = 0
    for client, settings in CLASSIC.items():
        clients("confluent").produce(broker.bootstrap, topic, numbered(first, 30))
        expected = [b"%05d" % n for n in range(first, first + 30)]
        with group_of(broker, clients, name) as group:
            group.join("only", client, [topic], **settings)
            eventually(group.values, expected.__eq__)
        first += 30


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_subscribes_to_topics_made_before_and_after(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, protocol: str
) -> None:
    create_topic(broker, f"{name}-other")
    create_topic(broker, f"{name}-wanted-1")
    # librdkafka and franz-go send a pattern of their own making only in classic groups; Java's goes to the broker.
    settings = {"metadata_max_age_ms": "1000", **PROTOCOLS[protocol]["java"]}
    with group_of(broker, clients, name) as group:
        group.join("member", "java", [], f"{name}-wanted-.*", **settings)
        assert group.settle(1)["member"] == {(f"{name}-wanted-1", 0)}
        create_topic(broker, f"{name}-wanted-2", 2)
        owned = group.settle(3)["member"]
        assert {topic for topic, _ in owned} == {f"{name}-wanted-1", f"{name}-wanted-2"}


def test_a_static_member_gets_its_partitions_back_without_a_rebalance(
    broker: BrokerProcess, clients: Callable[[str], Client], java: AgentClient, name: str
) -> None:
    topic = create_topic(broker, name, PARTITIONS)
    settings = {"session_timeout_ms": "20000", **CLASSIC["java"]}
    with group_of(broker, clients, name) as group:
        group.join("a", "java", [topic], group_instance_id="first", **settings)
        group.join("b", "java", [topic], group_instance_id="second", **settings)
        before = group.settle(PARTITIONS)
        group.leave("a")
        described = java.agent.call("describe_group", bootstrap=broker.bootstrap, group=name)
        assert {one["instance"] for one in described["members"]} == {"first", "second"}
        assert group.look()["b"].assignment == before["b"]
        group.join("a", "java", [topic], group_instance_id="first", **settings)
        assert group.settle(PARTITIONS) == before


def test_a_classic_group_moves_to_the_new_protocol_while_it_works(
    broker: BrokerProcess, clients: Callable[[str], Client], java: AgentClient, name: str
) -> None:
    topic = create_topic(broker, name, PARTITIONS)
    with group_of(broker, clients, name) as group:
        group.join("old", "java", [topic], **CLASSIC["java"])
        group.settle(PARTITIONS)
        clients("confluent").produce(broker.bootstrap, topic, numbered(0, 60))
        eventually(group.values, lambda seen: len(seen) == 60)

        group.join("new", "java", [topic], **CONSUMER["java"])
        group.settle(PARTITIONS)
        described = java.agent.call("describe_group", bootstrap=broker.bootstrap, group=name)
        assert described["type"] == "CONSUMER"
        assert len(described["members"]) == 2

        group.leave("old")
        group.settle(PARTITIONS)
        clients("confluent").produce(broker.bootstrap, topic, numbered(60, 60))
        eventually(
            lambda: {record.value for record in group.look()["new"].records},
            lambda seen: seen >= {b"%05d" % n for n in range(60, 120)},
        )


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_broker_assigns_by_the_assignor_that_members_ask_for(
    broker: BrokerProcess, clients: Callable[[str], Client], java: AgentClient, name: str, assignor: str
) -> None:
    topics = [create_topic(broker, f"{name}-{suffix}", 3) for suffix in "ab"]
    with group_of(broker, clients, name) as group:
        for member in ("one", "two"):
            group.join(member, "java", topics, group_remote_assignor=assignor, **CONSUMER["java"])
        owned = group.settle(6)
        sizes = sorted(len(places) for places in owned.values())
        assert sizes == ([3, 3] if assignor == "uniform" else [2, 4])
        described = java.agent.call("describe_group", bootstrap=broker.bootstrap, group=name)
        assert described["assignor"] == assignor
        assert described["state"] == "STABLE"
