"""The same strange produce requests at Apache Kafka itself: our table of errors is its answers, not our opinion."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import CreateTopicsRequest
from ottla.records.compression import Codec
from tests.support.hostile_batches import HOSTILE, UNREADABLE
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.raw_client import RawClient, batch_of
from tests.support.sequences import EXPECTED_SEQUENCES, sequence_transcript

pytestmark = [pytest.mark.jvm, pytest.mark.xdist_group("kafka-peer")]

# Where we say something else on purpose, with what Kafka says.
KAFKA_DIFFERS = {
    "a byte too many": ErrorCode.NONE,  # it drops what follows; we would rather not guess
    "length of a header alone": ErrorCode.CORRUPT_MESSAGE,  # it reads the rest as a second batch
    "length 2^31-1": ErrorCode.UNKNOWN_SERVER_ERROR,  # an overflow inside Kafka
    "codec 5": ErrorCode.UNKNOWN_SERVER_ERROR,
    "codec 7": ErrorCode.UNKNOWN_SERVER_ERROR,
    "log-append time set by the client": ErrorCode.NONE,  # it rewrites the bit, which costs a new CRC
    "max timestamp 2^63-1": ErrorCode.NONE,  # it recounts the maximum; we do not open records
    "transactional without a producer": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "a producer id without an epoch": ErrorCode.NONE,
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    require_kafka_libs()
    folder: Path = tmp_path_factory.mktemp("kafka")
    with KafkaPeer(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(kafka: KafkaPeer) -> Iterator[RawClient]:
    with RawClient.to(kafka.bootstrap) as connected:
        create(connected, "plain")
        create(connected, "compacted", {"cleanup.policy": "compact"})
        yield connected


def create(client: RawClient, name: str, configs: dict[str, str] | None = None) -> None:
    topic = CreateTopicsRequest.CreatableTopic
    settings = [
        CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
    ]
    wanted = topic(name=name, num_partitions=1, replication_factor=1, configs=settings)
    (answer,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7).topics
    assert answer.error_code == 0, answer.error_message
    deadline = time.monotonic() + 30
    while client.fetch(name, max_wait_ms=0).error_code and time.monotonic() < deadline:  # until it has a leader
        time.sleep(0.05)


def code(line: Any) -> ErrorCode:
    return ErrorCode(line.error_code)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_batches(client: RawClient, name: str) -> None:
    make, ours = HOSTILE[name]
    assert code(client.produce("plain", make())) is KAFKA_DIFFERS.get(name, ours)


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_records_are_refused_by_kafka_too(client: RawClient, name: str) -> None:
    assert code(client.produce("compacted", UNREADABLE[name])) is not ErrorCode.NONE


def test_sizes_are_judged_before_and_after_recompression(client: RawClient) -> None:
    create(client, "plain-only", {"compression.type": "uncompressed", "max.message.bytes": "1000"})
    assert code(client.produce("plain-only", batch_of(bytes(5000), codec=Codec.ZSTD))) is ErrorCode.MESSAGE_TOO_LARGE
    create(client, "zstd-only", {"compression.type": "zstd", "max.message.bytes": "1000"})
    assert code(client.produce("zstd-only", batch_of(bytes(5000)))) is ErrorCode.MESSAGE_TOO_LARGE


def test_sequences_of_idempotent_producers(client: RawClient) -> None:
    create(client, "idempotent")
    told = sequence_transcript(client, "idempotent")
    assert told == EXPECTED_SEQUENCES
