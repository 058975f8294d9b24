"""Batches that are sent from a file arrive as those from memory do: mixed with them, again after a crash, over TLS."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.client.access.security import Security, Tls
from ottla.client.address import ClusterAddress
from ottla.client.batch_in_file import BatchInFile, FileCut, KeptOpen
from ottla.client.cluster import ClusterClient
from ottla.client.producing import Batch, TransactionalProducer
from ottla.common.failures import Retriable
from ottla.common.ids import TopicPartition
from ottla.testing import Broker
from tests.client.test_producing import batch, committed_values
from tests.support.brokers import OttlaProcess
from tests.support.certificates import Certificates
from tests.support.proxy import Proxy

OUT = "out"
Store = Callable[[bytes], BatchInFile]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Appends a batch to a file, which has something else before it."""
    path = tmp_path / "batches"
    path.write_bytes(b"something else")
    file = KeptOpen(path)

    def stored(data: bytes) -> BatchInFile:
        position = path.stat().st_size
        with path.open("ab") as appending:
            appending.write(data)
        return BatchInFile(file, position, len(data))

    yield stored
    file.close()


def noise(seed: int, count: int) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(chance.choice([10, 70_000, 700_000])) for _ in range(count)]


def in_turn(values: list[bytes], store: Store) -> Iterator[tuple[TopicPartition, Batch]]:
    """Two of three in the file; several of both kinds in a request."""
    for number, value in enumerate(values):
        data = batch(value)
        yield TopicPartition(OUT, number % 4), store(data) if number % 3 else data


def produce(cluster: ClusterClient, values: list[bytes], store: Store) -> None:
    producer = TransactionalProducer(cluster, "writer")
    producer.start()
    with producer.transaction():
        producer.produce(in_turn(values, store))
    producer.close()


def test_batches_in_a_file_and_in_memory_arrive_whole_and_in_order(store: Store) -> None:
    values = noise(1, 60)
    with Broker() as broker:
        broker.create_topic(OUT, 4)
        with ClusterClient(broker.bootstrap_servers) as cluster:
            produce(cluster, values, store)
        found = committed_values(broker.bootstrap_servers, OUT, 4)
    assert sorted(found) == sorted(values)
    for partition in range(4):
        mine = values[partition::4]
        assert [value for value in found if value in mine] == mine


def test_they_are_sent_again_when_the_broker_is_killed(ottla_process: OttlaProcess, store: Store) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": ottla_process.bootstrap})
    admin.create_topics([NewTopic(OUT, 4)])[OUT].result()
    expected = []
    with ClusterClient(ottla_process.bootstrap) as cluster:
        producer = TransactionalProducer(cluster, "writer")
        producer.start()
        with producer.transaction():
            for part in range(4):
                values = noise(part, 12)
                producer.produce(in_turn(values, store))
                expected += values
                if part in (0, 2):
                    ottla_process.restart(kill=True)
        producer.close()
    assert sorted(committed_values(ottla_process.bootstrap, OUT, 4)) == sorted(expected)


def test_requests_that_are_cut_and_answers_that_are_lost_lose_no_batch(store: Store) -> None:
    values = noise(3, 60)
    with Proxy(seed=7) as proxy, Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        proxy.target = int(broker.bootstrap_servers.rpartition(":")[2])
        broker.create_topic(OUT, 4)
        with ClusterClient(proxy.address) as cluster:
            proxy.lose_produce_answers(0.2)
            proxy.cut_requests(0.05)
            produce(cluster, values, store)
        assert proxy.lost
        assert sorted(committed_values(broker.bootstrap_servers, OUT, 4)) == sorted(values)


def test_over_tls_they_are_read_and_sent(store: Store, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    values = noise(4, 30)
    with (
        Proxy(tls=certificates.server(certificates.issue("localhost", "127.0.0.1"))) as proxy,
        Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker,
    ):
        proxy.target = int(broker.bootstrap_servers.rpartition(":")[2])
        broker.create_topic(OUT, 4)
        security = Security(Tls(ca_location=str(certificates.ca)))
        with ClusterClient(ClusterAddress(proxy.address, security)) as cluster:
            produce(cluster, values, store)
        reading = {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}
        assert sorted(committed_values(proxy.address, OUT, 4, **reading)) == sorted(values)


def test_a_file_that_is_cut_is_told_by_name(store: Store) -> None:
    with Broker() as broker, ClusterClient(broker.bootstrap_servers) as cluster:
        broker.create_topic(OUT, 4)
        producer = TransactionalProducer(cluster, "writer", retry_timeout_s=0.1)
        producer.start()
        cut = store(batch(random.Random(5).randbytes(500_000)))
        os.truncate(cut.file.name, 1_000)
        producer.begin()
        with pytest.raises(Retriable, match="batches is shorter than it was"):
            producer.produce([(TopicPartition(OUT, 0), cut)])
            producer.flush()
        with pytest.raises(FileCut):
            bytes(cut)
        producer.abort()
        producer.close()
        assert committed_values(broker.bootstrap_servers, OUT, 4) == []


def test_a_file_is_open_for_as_long_as_a_batch_refers_to_it(tmp_path: Path) -> None:
    data = batch(b"value")
    (tmp_path / "batch").write_bytes(data)
    kept = BatchInFile(KeptOpen(tmp_path / "batch"), 0, len(data))
    descriptor = kept.file.fileno()
    (tmp_path / "batch").unlink()
    assert bytes(kept) == data
    del kept
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
