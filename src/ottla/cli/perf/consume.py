"""`ottla perf consume`: how fast a topic can be read from its start."""

from __future__ import annotations

import time
from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.error_sentences import sentence
from ottla.cli.name_completion import complete_topic
from ottla.cli.perf.report import ProgressLine, Tally, report
from ottla.cli.records.positions import log_bounds
from ottla.cli.settings import Settings, at_least, command
from ottla.common.errors import OttlaError

BATCH = 2000


@command("consume")
@click.argument("topic", shell_complete=complete_topic)
@click.option("-n", "--count", type=at_least(1), help="How many records [all there are].")
def consume(settings: Settings, topic: str, count: int | None) -> None:
    """Read TOPIC from its start to its end (or COUNT records) and measure; commits nothing."""
    from confluent_kafka import TopicPartition

    cluster = Cluster(settings)
    # explicit offsets: for "beginning" librdkafka asks again, and may wait half a second before it does
    bounds = log_bounds(cluster, [(topic, partition.id) for partition in cluster.topics([topic])[topic].partitions])
    consumer = cluster.consumer(
        {
            "group.id": "ottla-cli",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "queued.min.messages": "500000",
            "check.crcs": False,
        }
    )
    tally, line = Tally(), ProgressLine(count)
    first_ms: float | None = None
    ends: set[int] = set()
    consumer.assign([TopicPartition(*partition, bound.start) for partition, bound in bounds.items()])
    try:
        while len(ends) < len(bounds) and (count is None or tally.records < count):
            batch = consumer.consume(BATCH, 0.2)
            if not tally.records and batch:
                first_ms = tally.seconds * 1000
            _count(tally, batch, ends)
            line.update(tally)
            if not tally.records and not ends:
                cluster.check()
        tally.ended_s = time.perf_counter()
    finally:
        line.clear()
        report(settings, tally, {"first_record_ms": None if first_ms is None else round(first_ms, 3)})
        consumer.close()


def _count(tally: Tally, batch: list[Any], ends: set[int]) -> None:
    for message in batch:
        error = message.error()
        if error is None:
            tally.records += 1
            tally.bytes += len(message)
        elif error.name() == "_PARTITION_EOF":
            ends.add(message.partition())
        else:
            raise OttlaError(sentence(error, f"topic '{message.topic()}'"))
