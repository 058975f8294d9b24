"""Fetches of thousands of partitions: worked on in turns, and otherwise as any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from ottla.testing import Broker
from tests.support.raw_client import RawClient, batch_of, fetch_request

PARTITIONS = 1_100
LONG_MS = 600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("wide", PARTITIONS)
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient.to(broker.bootstrap_servers) as connected:
        yield connected


def at_the_end(broker: Broker) -> list[tuple[str | bytes, int, int]]:
    """Of every partition what comes next."""
    found = broker.server.broker.partitions.of_topic("wide")
    return [("wide", one.index, one.log.log_end_offset) for one in found]


def watchers(broker: Broker) -> int:
    return sum(len(one._watchers) for one in broker.server.broker.partitions.of_topic("wide"))


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def test_one_that_waits_is_answered_when_something_comes(broker: Broker, client: RawClient) -> None:
    client.send(fetch_request(at_the_end(broker), max_wait_ms=LONG_MS), 12)
    until(lambda: watchers(broker) == PARTITIONS)
    with RawClient.to(broker.bootstrap_servers) as other:
        other.produce("wide", batch_of(b"here"), partition=1_034)
    answer = client.receive("FetchRequest", 12)
    found = {line.partition_index for topic in answer.responses for line in topic.partitions if line.records}
    assert found == {1_034}
    until(lambda: watchers(broker) == 0)  # the answer may be here before the loop has forgotten all of them


def test_nothing_is_missed_that_comes_while_it_looks(broker: Broker, client: RawClient) -> None:
    """Each fetch is on its way when the record comes: before, in the middle of or after its look."""
    with RawClient.to(broker.bootstrap_servers) as other:
        for number in range(8):
            client.send(fetch_request(at_the_end(broker), max_wait_ms=LONG_MS), 12)
            time.sleep(0.004 * number)
            other.produce("wide", batch_of(b"here"), partition=7)
            answer = client.receive("FetchRequest", 12)
            assert {line.partition_index for one in answer.responses for line in one.partitions if line.records} == {7}


def test_one_whose_client_has_gone_is_forgotten(broker: Broker, client: RawClient) -> None:
    client.send(fetch_request(at_the_end(broker), max_wait_ms=LONG_MS), 12)
    until(lambda: watchers(broker) == PARTITIONS)
    client.close()
    until(lambda: watchers(broker) == 0)


def test_a_session_goes_on_with_small_requests(broker: Broker, client: RawClient) -> None:
    opened = client.call(fetch_request(at_the_end(broker), session_epoch=0, max_wait_ms=0), 12)
    assert sum(len(topic.partitions) for topic in opened.responses) == PARTITIONS
    client.send(fetch_request([], session_id=opened.session_id, session_epoch=1, max_wait_ms=LONG_MS), 12)
    until(lambda: watchers(broker) == PARTITIONS)
    with RawClient.to(broker.bootstrap_servers) as other:
        other.produce("wide", batch_of(b"here"), partition=3)
    answer = client.receive("FetchRequest", 12)
    assert [(line.partition_index, bool(line.records)) for one in answer.responses for line in one.partitions] == [
        (3, True)
    ]
