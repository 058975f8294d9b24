"""What may become of a transaction on Apache Kafka while a batch is published: as on Ottla, the batch is there once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.producing import ProducerFenced, TransactionalProducer
from ottla.common.errors import OttlaError
from ottla.spark.sink.publishing import Publisher, PublisherSettings
from tests.spark import test_publishing as on_ottla
from tests.spark import topics
from tests.spark.pipeline.test_runner import eventually
from tests.spark.test_publishing import Interrupted, expected, labels, publish, some, wait_for_state, with_transactions
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


ALLOWED_MS = 60_000
# It notices in a moment that a transaction is overdue, and forgets an id that nobody used for some seconds.
SOON = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
    "transactional.id.expiration.ms": "8000",
    "transaction.max.timeout.ms": str(ALLOWED_MS),
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
}


class Kafka(KafkaPeer):
    @property
    def bootstrap_servers(self) -> str:
        return self.bootstrap


@pytest.fixture(params=[2, 1], ids=["transactions v2", "transactions v1"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    require_kafka_libs()
    with Kafka(tmp_path_factory.mktemp("kafka"), SOON) as running:
        with_transactions(running, request.param)
        for topic in (on_ottla.OUT, "in"):
            topics.create(running.bootstrap, 2, name=topic)
        yield running


def test_a_query_lives_through_time_outs_expiry_and_restarts_until_another_one_takes_over(kafka: Any) -> None:
    address = ClusterAddress(kafka.bootstrap)
    settings = PublisherSettings(address, "query", "group", on_ottla.MARKERS, transaction_timeout_ms=1_000)
    publisher = Publisher(settings)
    # With a time-out that outlasts a restart: a Kafka that finds an overdue transaction while it starts may abort it
    # without markers in its partitions, after which no client can tell what is committed.
    patient = Publisher(replace(settings, name="patient", transaction_timeout_ms=ALLOWED_MS))
    publisher.check_cluster(on_ottla.OUT)
    publish(publisher, 0, some(0))

    overdue = Interrupted(some(1), lambda: wait_for_state(kafka, "CompleteAbort"))
    publish(publisher, 1, overdue)
    assert overdue.readings == 2
    assert labels(kafka) == expected(0, 1)

    wait_for_state(kafka, None)
    publish(publisher, 2, some(2))
    assert labels(kafka) == expected(0, 1, 2)

    publish(patient, 0, Interrupted(some(3), lambda: kafka.restart(kill=True)))
    # A commit is told when it is decided: its markers may still be on their way to the partitions.
    eventually(lambda: len(labels(kafka)) >= 48)
    assert labels(kafka) == expected(0, 1, 2, 3)

    # It has a second, and is taken for one that has had all the time that this cluster allows.
    longest = Publisher(replace(settings, name="longest"))
    longest._transacting._first_timeout_ms = ALLOWED_MS
    with pytest.raises(OttlaError, match=r"allows no longer one: .*maxBytesPerTrigger.*transaction\.max\.timeout\.ms"):
        publish(longest, 0, Interrupted(some(5), lambda: wait_for_state(kafka, "CompleteAbort", "longest")))
    assert labels(kafka) == expected(0, 1, 2, 3)

    def take_over() -> None:
        with ClusterClient(kafka.bootstrap) as cluster:
            TransactionalProducer(cluster, "query").start()

    with pytest.raises(ProducerFenced, match="another writer has taken over 'query'"):
        publish(publisher, 3, Interrupted(some(4), take_over))
    assert labels(kafka) == expected(0, 1, 2, 3)
    for one in (publisher, patient, longest):
        one.close()
