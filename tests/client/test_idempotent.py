"""Batches without a transaction: seen at once, in order, and once although requests are sent again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client.cluster import ClusterClient
from ottla.client.idempotent import IdempotentProducer
from ottla.client.producing import TransactionRefused
from ottla.common.failures import Failure
from ottla.common.ids import TopicPartition
from ottla.testing import Broker
from tests.client.test_producing import batch, committed_values
from tests.spark import topics
from tests.support.proxy import Proxy


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_what_is_written_is_seen_without_a_commit(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    out = topics.create(servers, 1, name="at-once")
    place = TopicPartition(out, 0)
    with ClusterClient(servers) as cluster, IdempotentProducer(cluster) as producer:
        for first in range(0, 100, 50):
            producer.write((place, batch(str(number).encode())) for number in range(first, first + 50))
            found = committed_values(servers, out, partitions=1)
            assert found == [str(number).encode() for number in range(first + 50)]


def test_a_request_whose_answer_is_lost_writes_nothing_twice() -> None:
    with Proxy(seed=3) as proxy, Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        proxy.target = int(broker.bootstrap_servers.rpartition(":")[2])
        broker.create_topic("lossy", 1)
        with ClusterClient(proxy.address, timeout_s=0.5) as cluster, IdempotentProducer(cluster) as producer:
            proxy.lose_produce_answers(0.1)
            values = [b"%d" % number for number in range(60)]
            producer.write((TopicPartition("lossy", 0), batch(value)) for value in values)
        assert proxy.lost
        assert committed_values(broker.bootstrap_servers, "lossy", partitions=1) == values


def test_a_refusal_is_told_and_the_next_batches_are_written(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    out = topics.create(servers, 1, {"max.message.bytes": "1000"}, name="small")
    place = TopicPartition(out, 0)
    with ClusterClient(servers) as cluster, IdempotentProducer(cluster) as producer:
        noise = bytes(range(256)) * 8
        with pytest.raises(TransactionRefused) as told:
            producer.write([(place, batch(b"a")), (place, batch(*(noise[i : i + 250] for i in range(1000))))])
        assert told.value.failure is Failure.DATA
        producer.write([(place, batch(b"b"))])
    assert committed_values(servers, out, partitions=1)[-1] == b"b"
