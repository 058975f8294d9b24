"""A conversation with an idempotent producer's sequences, and what Apache Kafka 4.3.1 answers."""

from __future__ import annotations

from ottla.common.errors import ErrorCode
from tests.support.hostile_batches import plain
from tests.support.raw_client import RawClient


def sequence_transcript(client: RawClient, topic: str) -> list[tuple[str, str, int]]:
    """What a broker says to a series of batches with sequences; the same for Kafka and for us."""
    steps: list[tuple[str, int, int, int, int]] = [
        # what, producer id, epoch, sequence, records
        ("a first batch may start anywhere", 77, 0, 5, 1),
        ("the next one", 77, 0, 6, 1),
        ("the last one again", 77, 0, 6, 1),
        ("the first one again", 77, 0, 5, 1),
        ("a gap", 77, 0, 9, 1),
        ("older than all", 77, 0, 3, 1),
        ("a new epoch that does not start at 0", 77, 1, 3, 1),
        ("a new epoch", 77, 1, 0, 1),
        ("the old epoch", 77, 0, 7, 1),
        ("an overlap", 77, 1, 0, 2),
        ("the epoch goes on", 77, 1, 1, 1),
        *((f"batch {n} of eight", 78, 0, n, 1) for n in range(8)),
        *((f"batch {n} again", 78, 0, n, 1) for n in range(8)),
        ("around the end of the sequence", 79, 0, 2**31 - 1, 2),
        ("goes on at one", 79, 0, 1, 1),
        ("around the end, again", 79, 0, 2**31 - 1, 2),
        ("zero is part of an old batch", 79, 0, 0, 1),
    ]
    told = []
    for what, producer_id, epoch, sequence, count in steps:
        batch = plain(*[b"x"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        line = client.produce(topic, batch)
        told.append((what, ErrorCode(line.error_code).name, line.base_offset))
    return told


EXPECTED_SEQUENCES = [
    ("a first batch may start anywhere", "NONE", 0),
    ("the next one", "NONE", 1),
    ("the last one again", "NONE", 1),
    ("the first one again", "NONE", 0),
    ("a gap", "OUT_OF_ORDER_SEQUENCE_NUMBER", -1),
    ("older than all", "OUT_OF_ORDER_SEQUENCE_NUMBER", -1),
    ("a new epoch that does not start at 0", "OUT_OF_ORDER_SEQUENCE_NUMBER", -1),
    ("a new epoch", "NONE", 2),
    ("the old epoch", "INVALID_PRODUCER_EPOCH", -1),
    ("an overlap", "OUT_OF_ORDER_SEQUENCE_NUMBER", -1),
    ("the epoch goes on", "NONE", 3),
    *((f"batch {n} of eight", "NONE", 4 + n) for n in range(8)),
    *((f"batch {n} again", "OUT_OF_ORDER_SEQUENCE_NUMBER", -1) for n in range(3)),
    *((f"batch {n} again", "NONE", 4 + n) for n in range(3, 8)),
    ("around the end of the sequence", "NONE", 12),
    ("goes on at one", "NONE", 14),
    ("around the end, again", "NONE", 12),
    ("zero is part of an old batch", "OUT_OF_ORDER_SEQUENCE_NUMBER", -1),
]
