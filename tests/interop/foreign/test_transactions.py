"""Transactions with clients of other languages: Java and franz-go speak transactions v2, kafkajs the classic ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.interop.foreign.agent_transactions import AgentTransactions
from tests.interop.foreign.clients import AgentClient, Client, Sent
from tests.interop.foreign.topics import create_topic
from tests.support.process import BrokerProcess
from tests.support.raw_client import RawClient
from tests.support.transactional_client import set_transaction_version
from tests.support.transactional_libraries import (
    ConfluentTransactions,
    Failed,
    Fenced,
    TransactionalLibrary,
    committed_offset,
    read_values,
)

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]

CLIENTS = ["java", "kafkajs", "franz-go"]
# franz-go commits offsets in a transaction as a member of their group only.
WITH_OFFSETS = ["java", "kafkajs"]


Make = Callable[[str], TransactionalLibrary]


@pytest.fixture
def make(broker: BrokerProcess, clients: Callable[[str], Client], kind: str) -> Make:
    client = clients(kind)
    assert isinstance(client, AgentClient)
    return lambda transactional_id: AgentTransactions(client, broker.bootstrap, transactional_id)


@pytest.fixture(params=[2, 1], ids=["v2", "v1"])
def level(request: pytest.FixtureRequest, broker: BrokerProcess) -> Iterator[int]:
    """transaction.version of the broker while the test runs."""
    with RawClient.to(broker.bootstrap) as client:
        set_transaction_version(client, request.param)
        yield request.param
        set_transaction_version(client, 2)


@pytest.mark.parametrize("kind", CLIENTS)
def test_commit_and_abort(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, kind: str, make: Make, level: int
) -> None:
    topic = create_topic(broker, name, 2)
    with make(name) as producer:
        for number, commit in enumerate((True, False, True, False, False, True)):
            producer.begin()
            for partition in (0, 1):
                producer.send(topic, b"%d" % number, partition)
            producer.commit() if commit else producer.abort()
    assert read_values(broker.bootstrap, topic, (0, 1)) == [b"0", b"2", b"5"] * 2
    seen = clients(kind).consume(broker.bootstrap, topic, 6, isolation_level="read_committed")
    assert sorted(record.value or b"" for record in seen) == [b"0", b"0", b"2", b"2", b"5", b"5"]


@pytest.mark.parametrize("kind", WITH_OFFSETS)
def test_offsets_move_with_the_commit(broker: BrokerProcess, name: str, make: Make, level: int) -> None:
    topic = create_topic(broker, name)
    with make(name) as producer:
        producer.begin()
        producer.send(topic, b"one")
        producer.offsets(name, {(topic, 0): 5})
        assert committed_offset(broker.bootstrap, name, topic) < 0
        producer.commit()
        _eventually_committed(broker, name, topic, 5)
        producer.begin()
        producer.offsets(name, {(topic, 0): 9})
        producer.abort()
        _eventually_committed(broker, name, topic, 5)


def _eventually_committed(broker: BrokerProcess, group: str, topic: str, offset: int) -> None:
    """Kafka answers a commit before it has told the group."""
    from tests.interop.foreign.waiting import eventually

    eventually(lambda: committed_offset(broker.bootstrap, group, topic), offset.__eq__)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_second_instance_fences_the_first(broker: BrokerProcess, name: str, make: Make, level: int) -> None:
    topic = create_topic(broker, name)
    first = make(name)
    first.open()
    first.begin()
    first.send(topic, b"zombie")
    with make(name) as second:
        second.begin()
        second.send(topic, b"heir")
        second.commit()
        with pytest.raises((Fenced, Failed)):
            first.send(topic, b"zombie again")
            first.commit()
        second.begin()
        second.send(topic, b"goes on")
        second.commit()
    first.close()
    assert read_values(broker.bootstrap, topic) == [b"heir", b"goes on"]


@pytest.mark.parametrize("kind", CLIENTS)
def test_consume_transform_produce(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, kind: str, level: int
) -> None:
    source, target = create_topic(broker, f"{name}-in", 2), create_topic(broker, f"{name}-out", 2)
    values = [b"%04d" % number for number in range(120)]
    clients("confluent").produce(
        broker.bootstrap, source, [Sent(None, value, partition=number % 2) for number, value in enumerate(values)]
    )
    client = clients(kind)
    assert isinstance(client, AgentClient)
    moved = client.agent.call(
        "txn_pipe",
        bootstrap=broker.bootstrap,
        source=source,
        target=target,
        group=name,
        transactional_id=name,
        count=len(values),
    )
    assert moved == len(values)
    assert read_values(broker.bootstrap, target, (0, 1)) == values[0::2] + values[1::2]
    assert [committed_offset(broker.bootstrap, name, source, one) for one in (0, 1)] == [60, 60]


def test_makers_take_over_from_one_another(broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> None:
    topic = create_topic(broker, name)
    expected: list[bytes] = []
    for number, kind in enumerate([*CLIENTS, "confluent", *CLIENTS]):
        client: Any = clients(kind)
        if kind == "confluent":
            made: TransactionalLibrary = ConfluentTransactions(broker.bootstrap, name)
        else:
            made = AgentTransactions(client, broker.bootstrap, name)
        with made as producer:
            for commit in (True, False, True):
                producer.begin()
                value = f"{number} {kind} {commit}".encode()
                producer.send(topic, value)
                producer.commit() if commit else producer.abort()
                expected += [value] if commit else []
    assert read_values(broker.bootstrap, topic) == expected


@pytest.mark.parametrize("kind", ["java"])
def test_a_java_producer_goes_on_after_a_kill_of_the_broker(
    own_broker: BrokerProcess, clients: Callable[[str], Client], kind: str
) -> None:
    topic = create_topic(own_broker, "killed")
    client = clients(kind)
    assert isinstance(client, AgentClient)
    with AgentTransactions(client, own_broker.bootstrap, "killed") as producer:
        producer.begin()
        producer.send(topic, b"before")
        own_broker.restart(kill=True)
        producer.send(topic, b"after")
        producer.commit()
        producer.begin()
        producer.send(topic, b"lost")
        own_broker.restart(kill=True)
        producer.abort()
        producer.begin()
        producer.send(topic, b"next")
        producer.commit()
    assert read_values(own_broker.bootstrap, topic) == [b"before", b"after", b"next"]
