"""A backlog of batches that are larger than a consumer's limit for a partition is read to its last record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.foreign.clients import Client, Sent
from tests.interop.foreign.topics import create_topic
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]

PARTITIONS = 6
LARGE_BYTES = 1_500_000  # more than 1 MiB, which is what a consumer asks for if it is told nothing


@pytest.mark.parametrize("consumer", ["java", "kafkajs", "franz-go"])
def test_large_batches_in_many_partitions_are_all_read(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str, consumer: str
) -> None:
    reader = clients(consumer)
    create_topic(broker, name, PARTITIONS, {"max.message.bytes": "4000000"})
    for size in (LARGE_BYTES, 10, LARGE_BYTES):
        records = [Sent(None, b"x" * size, partition=partition) for partition in range(PARTITIONS)]
        clients("confluent").produce(broker.bootstrap, name, records, message_max_bytes="4000000")
    seen = reader.consume(broker.bootstrap, name, 3 * PARTITIONS)
    assert sorted((one.partition, one.offset) for one in seen) == [
        (partition, offset) for partition in range(PARTITIONS) for offset in range(3)
    ]
