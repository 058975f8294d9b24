"""The broker under test (Ottla; Apache Kafka in the slow suite, which proves the tests themselves) and the clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.foreign.agents import COMMANDS, Agent, Unavailable
from tests.interop.foreign.clients import AgentClient, Client, ConfluentClient
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import BrokerProcess

# Tests would otherwise wait: for more members before a group's first assignment, for members' next heartbeat, and for
# the cleaner's next look, and for the coordinator's look for transactions that are open for too long.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "log.cleaner.backoff.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
BROKERS = ["ottla", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.jvm])]
_numbers = itertools.count(1)


def make_broker(kind: str, folder: Path) -> BrokerProcess:
    if kind == "ottla":
        return OttlaProcess(folder, SETTINGS)
    require_kafka_libs()
    return KafkaPeer(folder, SETTINGS)


@pytest.fixture(scope="session", params=BROKERS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that do not stop it."""
    with make_broker(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(params=BROKERS)
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that the test may kill."""
    with make_broker(request.param, tmp_path / request.param) as running:
        yield running


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Client]]:
    """`clients("java")`: that client, started on first use; skips the test with the reason where it cannot be had."""
    started: dict[str, Client | Unavailable] = {"confluent": ConfluentClient()}
    agents: list[Agent] = []

    def get(name: str) -> Client:
        if name not in started:
            try:
                agent = Agent(name, COMMANDS[name](), tmp_path_factory.mktemp("agents") / f"{name}.log")
                agents.append(agent)
                started[name] = AgentClient(agent)
            except Unavailable as error:
                started[name] = error
        found = started[name]
        if isinstance(found, Unavailable):
            pytest.skip(str(found))
        return found

    yield get
    for agent in agents:
        agent.close()


@pytest.fixture(scope="session")
def java(clients: Callable[[str], Client]) -> AgentClient:
    client = clients("java")
    assert isinstance(client, AgentClient)
    return client


@pytest.fixture
def name() -> str:
    """A name that no other test uses, for topics and groups."""
    return f"interop-{next(_numbers)}"
