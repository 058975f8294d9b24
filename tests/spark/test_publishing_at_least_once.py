"""At least once: results come before the transaction and are seen without it; the rest of a batch is all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.address import ClusterAddress
from ottla.client.producing import TransactionalProducer
from ottla.common.ids import TopicPartition
from ottla.spark.sink.publishing import Publisher, PublisherSettings
from ottla.testing import Broker
from tests.client.test_producing import batch, committed_values
from tests.spark.test_publishing import MARKERS, OUT, Batches, publish

STATE = "state"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as running:
        for topic in (OUT, STATE, "in"):
            running.create_topic(topic, 2)
        yield running


@pytest.fixture
def publisher(broker: Broker) -> Iterator[Publisher]:
    address = ClusterAddress(broker.bootstrap_servers)
    settings = PublisherSettings(address, "query", "group", MARKERS, transactional_topics=frozenset({STATE}))
    made = Publisher(settings)
    made.check_cluster(OUT)
    yield made
    made.close()


def some(number: int) -> Batches:
    return [
        (TopicPartition(topic, one % 2), batch(b"%d-%d" % (number, one))) for one in range(4) for topic in (STATE, OUT)
    ]


def expected(*numbers: int) -> list[bytes]:
    return sorted(b"%d-%d" % (number, one) for number in numbers for one in range(4))


def seen(broker: Broker, topic: str) -> list[bytes]:
    return sorted(committed_values(broker.bootstrap_servers, topic))


def test_results_are_seen_before_the_commit_and_state_after_it(
    broker: Broker, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(publisher, 0, some(0))
    commit = TransactionalProducer.commit
    before: list[Any] = []

    def look_first(producer: TransactionalProducer) -> None:
        before.append((seen(broker, OUT), seen(broker, STATE)))
        commit(producer)

    monkeypatch.setattr(TransactionalProducer, "commit", look_first)
    publish(publisher, 1, some(1))
    assert before == [(expected(0, 1), expected(0))]
    assert seen(broker, OUT) == seen(broker, STATE) == expected(0, 1)


def test_a_transaction_that_is_lost_on_its_way_does_not_write_results_again(
    broker: Broker, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = TransactionalProducer.commit
    lost: list[int] = []

    def lose(producer: TransactionalProducer) -> None:
        if not lost:
            lost.append(1)
            raise ConnectionResetError("the request is lost")
        commit(producer)

    monkeypatch.setattr(TransactionalProducer, "commit", lose)
    publish(publisher, 0, some(0))
    assert lost
    assert seen(broker, OUT) == seen(broker, STATE) == expected(0)


def test_after_an_idle_week_and_a_restart_of_the_broker_it_goes_on(broker: Broker, publisher: Publisher) -> None:
    publish(publisher, 0, some(0))
    broker.clock.advance(days=8)
    publish(publisher, 1, some(1))
    broker.restart()
    publish(publisher, 2, some(2))
    assert seen(broker, OUT) == seen(broker, STATE) == expected(0, 1, 2)
