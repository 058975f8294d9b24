"""Which partitions are read, and that it takes no more work than there are partitions."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicId
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.spark.source.options import parse_options
from ottla.spark.source.subscription import subscribed
from tests.spark.planned import LIMIT, source
from tests.support.scripted_broker import ScriptedBroker

COUNT = 2_000


class Name(str):
    """A topic's name that counts how often something is looked up by it."""

    hashes = 0

    def __hash__(self) -> int:
        Name.hashes += 1
        return super().__hash__()


class Reader:
    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def partitions(self, topics: list[str]) -> dict[str, list[int]]:
        return {Name(topic): list(range(self._partitions)) for topic in topics}


def options(count: int) -> Any:
    named = f'{{"t": {list(range(count))}}}'
    return parse_options({"kafka.bootstrap.servers": "127.0.0.1:1", "assign": named}, is_streaming=True)


@pytest.mark.parametrize("must_exist", [True, False])
def test_thousands_of_assigned_partitions_are_looked_up_once_each(must_exist: bool) -> None:
    wanted = options(COUNT)
    Name.hashes = 0
    reader: Any = Reader(COUNT)
    assert len(subscribed(reader, wanted, must_exist=must_exist)) == COUNT
    assert Name.hashes <= 3 * COUNT


def test_a_partition_that_is_not_there_is_one_sentence() -> None:
    reader: Any = Reader(3)
    with pytest.raises(OttlaError, match="topic 't' has no partition 3 in the cluster"):
        subscribed(reader, options(4), must_exist=True)
    assert len(subscribed(reader, options(4), must_exist=False)) == 3


def test_planning_is_linear_in_partitions() -> None:
    """Calls are counted, those of builtins too; lookups by name are counted above."""
    few, many = (planning_calls(count) for count in (500, 5_000))
    assert many <= 12 * few


def planning_calls(partitions: int) -> int:
    def offsets(request: Any, version: int) -> Message:
        row = m.ListOffsetsResponse.ListOffsetsPartitionResponse
        rows = [
            row(partition_index=one.partition_index, offset=7, leader_epoch=1) for one in request.topics[0].partitions
        ]
        topic = m.ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=rows)
        return m.ListOffsetsResponse(topics=[topic])

    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event.endswith("call")

    with ScriptedBroker({"t": partitions}, topic_ids={"t": TopicId(b"t" * 16)}, ListOffsets=offsets) as broker:
        reader = source(broker.bootstrap, "t", maxOffsetsPerTrigger=3 * partitions)
        start = {"t": {str(number): 0 for number in range(partitions)}}
        sys.setprofile(count)
        try:
            splits = reader.partitions(start, reader.latestOffset(start, LIMIT))
        finally:
            sys.setprofile(None)
        reader.stop()
    assert sum(one.size for split in splits for one in split.ranges) == 3 * partitions  # type: ignore[attr-defined]
    return calls
