"""Ranges that compaction has emptied, on brokers that really compact."""

from __future__ import annotations

import time
from collections.abc import Iterator

import confluent_kafka
import pytest

pytest.importorskip("pyarrow")

from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.fetching import DataLoss, OffsetRange, fetch_ranges
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.kernel.decode import Decoder
from ottla.testing import Broker
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

KAFKA = pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.jvm])
OFTEN = {"log.cleaner.backoff.ms": "100"}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}


@pytest.fixture(params=["ottla", KAFKA])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "kafka":
        require_kafka_libs()
        with KafkaPeer(tmp_path_factory.mktemp("kafka"), OFTEN) as kafka:
            yield kafka.bootstrap
    else:
        with Broker(OFTEN) as broker:
            yield broker.bootstrap_servers


def produce(servers: str, key: bytes, value: bytes | None) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce("t", value, key)
    assert producer.flush(30) == 0


def offsets(reader: ClusterReader, start: int, end: int) -> list[int]:
    def fail(sentence: str) -> None:
        raise DataLoss(sentence)

    found: list[int] = []
    for one in fetch_ranges(reader, [OffsetRange("t", 0, start, end)], fail):
        decoder = Decoder(one.records, one.start, one.range.end, one.aborted)
        while (columns := decoder.next_columns()) is not None:
            found += columns[2].to_pylist()
    return found


def test_a_range_of_which_nothing_is_left_is_read_as_nothing(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("t", 1, 1, config=COMPACTED)])["t"].result(20)
    for number in range(10):
        produce(servers, b"a", b"%d" % number)
    count = 10
    with ClusterReader(ClientSettings(servers)) as reader:
        deadline = time.monotonic() + 120
        # Each record may begin a segment, and only those before the last one are cleaned.
        while 8 in (left := offsets(reader, 0, count)):
            assert time.monotonic() < deadline, left
            time.sleep(0.2)
            produce(servers, b"b", b"%d" % count)
            count += 1
        assert offsets(reader, 0, 9) == []
        assert offsets(reader, 3, 5) == []
        assert offsets(reader, 0, 10) == [9]
