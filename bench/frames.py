"""Ready-made requests for the load generator, and where in them and in their answers the bytes are that it touches.

Produce goes out in version 13 and Fetch in version 16, by topic id, as today's Java and Go clients send them.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.wire import frame
from ottla.protocol.messages import FetchRequest, ProduceRequest
from ottla.records.record import Record, build_batch

PRODUCE_VERSION = 13
FETCH_VERSION = 16
ACKS_ALL = -1
# After the correlation id (4), tags (1), topics (1), topic id (16), partitions (1) and index (4).
PRODUCE_ERROR_AT = 27
BATCH_BYTES = 1_000_000
# The Java consumer's defaults.
FETCH_BYTES_MAX, PARTITION_BYTES_MAX = 52_428_800, 1_048_576
_OFFSET_MARK = 0x0123456789ABCDEF


def batch(count: int, record_bytes: int, *, keys: Sequence[bytes] | None = None) -> bytes:
    """An uncompressed batch of `count` records of so many random bytes each."""
    now = int(time.time() * 1000)
    noise = os.urandom(record_bytes)
    records = [Record(index, now, keys[index] if keys else None, noise, ()) for index in range(count)]
    return bytes(build_batch(records))


def bulk_batch(record_bytes: int) -> tuple[bytes, int]:
    """A batch close to 1 MB, within Kafka's default `max.message.bytes`, and how many records it has."""
    count = BATCH_BYTES // (record_bytes + 12)
    return batch(count, record_bytes), count


def produce(topic_id: bytes, partition: int, records: bytes) -> bytes:
    return frame(
        0,
        PRODUCE_VERSION,
        ProduceRequest(
            transactional_id=None,
            acks=ACKS_ALL,
            timeout_ms=30_000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    topic_id=topic_id,
                    partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=records)],
                )
            ],
        ),
    )


def fetch(topic_id: bytes, partition: int) -> tuple[bytes, int]:
    """A Fetch without a session, and the position of its offset."""
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=FETCH_BYTES_MAX,
        session_id=0,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition,
                        current_leader_epoch=-1,
                        fetch_offset=_OFFSET_MARK,
                        partition_max_bytes=PARTITION_BYTES_MAX,
                    )
                ],
            )
        ],
    )
    made = frame(1, FETCH_VERSION, request)
    return made, made.index(struct.pack(">q", _OFFSET_MARK))


def write(path: Path, frames: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(frames)
    return path
