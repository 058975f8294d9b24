"""The same fetches at Apache Kafka and at Ottla: how much of which partition is sent, whatever the limits."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.messages import CreateTopicsRequest, FetchRequest
from ottla.testing import Broker
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.raw_client import RawClient, batch_of, fetch_request

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.xdist_group("kafka-peer")]

PARTITIONS = 8
NOBODY_WAITS_MS = 600_000


def fill(client: RawClient) -> list[list[int]]:
    """A topic of small segments; the sizes of its batches."""
    setting = CreateTopicsRequest.CreatableTopicConfig
    wanted = CreateTopicsRequest.CreatableTopic(
        name="topic",
        num_partitions=PARTITIONS,
        replication_factor=1,
        configs=[setting(name="segment.bytes", value="1048576"), setting(name="max.message.bytes", value="1000000")],
    )
    assert client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7).topics[0].error_code == 0
    chance = random.Random(11)
    sizes = []
    for partition in range(PARTITIONS):
        while client.fetch("topic", partition=partition, max_wait_ms=0).error_code:  # until it has a leader
            time.sleep(0.05)
        # The last one has several segments.
        count, choices = (8, [300_000]) if partition == PARTITIONS - 1 else (partition * 3 % 8, [10, 2000, 300_000])
        batches = [batch_of(bytes(chance.choice(choices))) for _ in range(count)]
        for one in batches:
            assert client.produce("topic", one, partition=partition).error_code == 0
        sizes.append([len(one) for one in batches])
    return sizes


def lines(answer: Any) -> list[tuple[int, ...]]:
    return [
        (
            line.partition_index,
            line.error_code,
            len(line.records or b""),
            line.high_watermark,
            line.last_stable_offset,
            line.log_start_offset,
        )
        for topic in answer.responses
        for line in topic.partitions
    ]


def asked(offsets: list[int], limit: int) -> list[Any]:
    rows = [
        FetchRequest.FetchPartition(
            partition=partition, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=limit
        )
        for partition, offset in enumerate(offsets)
    ]
    return [FetchRequest.FetchTopic(topic="topic", partitions=rows)]


def transcript(client: RawClient) -> list[Any]:
    sizes = fill(client)
    told: list[Any] = [sizes]
    chance = random.Random(12)
    for _ in range(150):
        offsets = [chance.randint(0, len(one)) for one in sizes]
        if chance.random() < 0.1:
            offsets[chance.randrange(PARTITIONS)] = 77  # beyond the end
        request = fetch_request(
            [], max_wait_ms=0, max_bytes=chance.choice([0, 1, 100, 2500, 301_000, 700_000, 50 << 20])
        )
        request.isolation_level = chance.randint(0, 1)
        request.topics = asked(offsets, chance.choice([0, 1, 100, 2100, 300_100, 700_000, 10 << 20]))
        told.append(lines(client.call(request, 12)))
    # Batches that were held back are enough, and so is what is in the next segment: neither waits for more.
    large = [next((at for at, size in enumerate(one) if size > 300_000), len(one)) for one in sizes]
    for offsets, limit, max_bytes in (
        (large, 300_100, 500_000),
        ([1 if one else 0 for one in sizes], 10 << 20, 50 << 20),
    ):
        request = fetch_request([], max_wait_ms=NOBODY_WAITS_MS, min_bytes=max_bytes, max_bytes=max_bytes)
        request.topics = asked(offsets, limit)
        answer = lines(client.call(request, 12))
        assert sum(size for _, _, size, *_ in answer) < max_bytes
        told.append(answer)
    told.append(session(client, len(sizes)))
    return told


def session(client: RawClient, count: int) -> list[Any]:
    """Small answers of one session: whose turn it is."""
    opening = fetch_request([], max_wait_ms=0, session_epoch=0)
    opening.topics = asked([0] * count, 10 << 20)
    opened = client.call(opening, 12)
    told = [lines(opened)]
    for epoch in range(1, 20):
        request = fetch_request([], max_wait_ms=0, session_id=opened.session_id, session_epoch=epoch, max_bytes=2500)
        told.append(lines(client.call(request, 12)))
    return told


def test_every_fetch_brings_what_it_brings_from_kafka(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path / "kafka") as kafka, RawClient.to(kafka.bootstrap) as client:
        theirs = transcript(client)
    with Broker() as ottla, RawClient.to(ottla.bootstrap_servers) as client:
        ours = transcript(client)
    assert ours == theirs
