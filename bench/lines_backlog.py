"""A backlog of records that do not compress: our exactly-once copy against Spark's own at-least-once one.

Every setting of both is the one that it comes with: ours reads and commits 256 MB at a time, the connector all at once.
"""

from __future__ import annotations

import os
import time
from functools import cache

from bench import frames
from bench.contenders import Contender
from bench.lines_spark import IN_FLIGHT, OURS, PARTITIONS, THEIRS, require_spark
from bench.lines_spark_sink import copy_topic
from bench.measure import Arm, Comparison, Values, throughput
from ottla.records.record import Record, build_batch

BYTES = 2_000_000_000
RECORD_BYTES = 1_000
_BATCH_RECORDS = frames.BATCH_BYTES // (RECORD_BYTES + 12)
# So many different ones for each partition.
_BATCHES = 4


@cache
def backlog(contender: Contender, share: float = 1.0) -> tuple[str, int]:
    """The name of a topic, and how many records it has."""
    name = f"bench-backlog-{share:g}"
    requests = int(BYTES * share * contender.scale.client_share) // (_BATCH_RECORDS * RECORD_BYTES)
    with contender.connect() as connection:
        topic_id = connection.create_topic(name, PARTITIONS, {})
    path = frames.write(
        contender.scratch(name),
        [frames.produce(topic_id, number % PARTITIONS, _noise()) for number in range(_BATCHES * PARTITIONS)],
    )
    contender.load("produce", frames=path, inflight=IN_FLIGHT, seconds=600, requests=requests)
    return name, requests * _BATCH_RECORDS


def _noise() -> bytes:
    now = int(time.time() * 1000)
    records = [Record(index, now, None, os.urandom(RECORD_BYTES), ()) for index in range(_BATCH_RECORDS)]
    return bytes(build_batch(records))


def copy(contender: Contender, source: str, share: float = 1.0) -> Values:
    topic, records = backlog(contender, share)
    busy_s, whole_s = copy_topic(contender, source, topic, records)
    total_mb = records * RECORD_BYTES / 1e6
    return {"copied": total_mb / busy_s, "copied with start": total_mb / whole_s}


def backlog_line(contender: Contender) -> Comparison:
    require_spark()

    def arm(label: str, source: str) -> Arm:
        return Arm(label, lambda: copy(contender, source), lambda: copy(contender, source, 0.2))

    return Comparison(
        "backlog",
        f"Spark copies {BYTES / 1e9:g} GB that does not compress, exactly once against at least once",
        [
            throughput("copied", "MB/s", goal=1.5, digits=0),
            throughput("copied with start", "MB/s", goal=None, digits=0),
        ],
        [arm("Spark's connector", THEIRS), arm("ottla", OURS)],
    )
