"""What a task leaves behind does not wait in memory for the tasks after it, which the same worker runs in the same
batch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytest.importorskip("pyspark")

from ottla.client.fetching import OffsetRange
from ottla.client.settings import parse_named
from ottla.spark.sink.in_tasks import Counts
from ottla.spark.source.ranges import RangeReading, rows_of
from ottla.streams import Processor, StreamsBuilder, serdes
from ottla.streams.engine.preparing import prepare
from ottla.streams.engine.running import TopologyRun
from ottla.streams.errors import DEFAULT_HANDLING
from ottla.testing import Broker

PARTITIONS = 8
_there: weakref.WeakSet[Any] = weakref.WeakSet()


class Remembers(Processor):
    """Has much of its own; a task's operators hold one another, so that only the collector frees them."""

    most = 0

    def __init__(self) -> None:
        self.much = bytearray(1024)
        _there.add(self)

    def process(self, record: Any) -> None:
        Remembers.most = max(Remembers.most, len(_there))


def test_one_task_at_a_time_is_in_memory() -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("in", PARTITIONS)])["in"].result(20)
        producer = Producer({"bootstrap.servers": servers})
        for partition in range(PARTITIONS):
            producer.produce("in", b"v", b"k", partition)
        assert producer.flush(20) == 0
        builder = StreamsBuilder(key=serdes.string, value=serdes.string)
        builder.stream("in").process(Remembers)
        topology, settings = builder.build(), parse_named(servers, {})
        prepared = prepare(topology, "leaves", settings, DEFAULT_HANDLING)
        reading = RangeReading.of({"kafka.bootstrap.servers": servers, "subscribe": "in", "includeHeaders": "true"})
        run = TopologyRun(
            topology, "leaves", settings, prepared.partition_counts, DEFAULT_HANDLING, prepared.generation,
            frozenset(prepared.own), reading,
        )  # fmt: skip
        gc.collect()
        ranges = rows_of([OffsetRange("in", number, 0, 1) for number in range(PARTITIONS)])
        for _ in run(iter([ranges]), Counts()):
            pass
    assert 1 <= Remembers.most <= 2
