"""A leader that states an end before what was read of it: for a moment, for good, or because records are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.client.fetching import DataLoss
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from tests.spark import topics
from tests.spark.planned import LIMIT, numbers, source
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import BrokerProcess
from tests.support.scripted_broker import ScriptedBroker

READ = {"t": {"0": 10}}


@pytest.fixture
def stating() -> Iterator[Callable[..., ScriptedBroker]]:
    """A broker that states these ends, one after the other, the last of them for good."""
    made: list[ScriptedBroker] = []

    def make(*ends: int) -> ScriptedBroker:
        left = list(ends)

        def offsets(request: Any, version: int) -> Message:
            end = left.pop(0) if len(left) > 1 else left[0]
            row = m.ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, offset=end, leader_epoch=0)
            return m.ListOffsetsResponse(
                topics=[m.ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[row])]
            )

        made.append(ScriptedBroker({"t": 1}, ListOffsets=offsets).__enter__())
        return made[-1]

    yield make
    for one in made:
        one.__exit__(None, None, None)


def test_it_is_waited_for(stating: Callable[..., ScriptedBroker]) -> None:
    reader = source(stating(5, 5, 12).bootstrap, "t")
    assert reader.latestOffset(READ, LIMIT)["t"]["0"] == 12


def test_a_query_that_reads_what_is_there_now_waits_too(stating: Callable[..., ScriptedBroker]) -> None:
    reader = source(stating(5, 5, 12, 13).bootstrap, "t")
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset(READ, LIMIT)
    assert end["t"]["0"] == 12
    assert reader.latestOffset(end, LIMIT) == end


def test_one_that_stays_behind_is_told_of(stating: Callable[..., ScriptedBroker]) -> None:
    reader = source(stating(5).bootstrap, "t", **{"kafka.default.api.timeout.ms": 300})
    end = reader.latestOffset(READ, LIMIT)
    with pytest.raises(DataLoss, match="partition t-0 ends at offset 5, but was read up to 10 before"):
        reader.partitions(READ, end)


KAFKA = pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.jvm])


@pytest.mark.parametrize("name", ["ottla", KAFKA])
@pytest.mark.parametrize("count", [8, 0])
def test_records_that_a_leader_lost_are_told_of_even_if_others_took_their_place(
    tmp_path: Path, name: str, count: int
) -> None:
    """As after a power cut: the log is shorter than what was read, and then grows past it."""
    if name == "kafka":
        require_kafka_libs()
    with KafkaPeer(tmp_path) if name == "kafka" else OttlaProcess(tmp_path) as broker:
        topic = topics.create(broker.bootstrap)
        for number in range(10):
            topics.produce(broker.bootstrap, topic, range(number, number + 1))
        reader = source(broker.bootstrap, topic)
        start = reader.initialOffset()
        read = reader.latestOffset(start, LIMIT)
        assert numbers(reader, start, read) == list(range(10))
        _lose(broker, topic, 4)
        if count:
            topics.produce(broker.bootstrap, topic, range(100, 100 + count))
        again = source(broker.bootstrap, topic)
        end = again.latestOffset(read, LIMIT)
        assert end[topic]["0"] == 6 + count
        with pytest.raises(DataLoss, match=f"partition {topic}-0 was read up to 10, but .* what lies before 6"):
            again.partitions(read, end)
        tolerant = source(broker.bootstrap, topic, failOnDataLoss="false")
        assert numbers(tolerant, read, end) == list(range(100, 100 + count))


def _lose(broker: BrokerProcess, topic: str, count: int) -> None:
    """The last batches of a log with as many batches as records, all of one size."""
    broker.kill()
    (log,) = broker.folder.rglob(f"{topic}-0/*.log")
    size = log.stat().st_size
    with log.open("r+b") as file:
        file.truncate(size - size // 10 * count)
    broker.start()
