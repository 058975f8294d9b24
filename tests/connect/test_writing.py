"""The task of a sink, without Spark and without a cluster: what it holds at once, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from ottla.client.fetching import OffsetRange
from ottla.client.settings import parse_named
from ottla.common.ids import TopicPartition
from ottla.connect.api import ConfigDef, Outage, Records, Sink, SinkWriter
from ottla.connect.rounds import writing
from ottla.connect.rounds.writing import Portion, WritePlan, write_task

PLACE = TopicPartition("t", 0)
TEXT = "org.apache.kafka.connect.storage.StringConverter"


class Noting(Sink):
    config_def: ClassVar[ConfigDef] = ConfigDef()
    opened: ClassVar[list[int]] = []
    written: ClassVar[list[list[int]]] = []
    fails_at: ClassVar[int] = -1

    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        Noting.opened.append(position)
        return _Noting()


class _Noting(SinkWriter):
    def write(self, records: Records) -> None:
        assert records.offsets is not None
        offsets = records.offsets.to_pylist()
        if Noting.fails_at in offsets:
            raise Outage("the other side is away.")
        Noting.written.append(offsets)

    def close(self) -> None: ...


def batches(size: int, count: int) -> Iterator[Any]:
    """Ten records each, with every other offset gone, as after compaction."""
    for first in range(0, count, 10):
        offsets = [2 * number for number in range(first, first + 10)]
        columns = {
            "key": pa.nulls(10, pa.binary()),
            "value": pa.array([b"x" * size] * 10, pa.binary()),
            "topic": pa.repeat("t", 10),
            "partition": pa.array([0] * 10, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array([0] * 10, pa.timestamp("us", "UTC")),
            "timestampType": pa.array([0] * 10, pa.int32()),
            "headers": pa.nulls(10, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
        yield pa.record_batch(columns)


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> WritePlan:
    Noting.opened, Noting.written, Noting.fails_at = [], [], -1
    monkeypatch.setattr(writing, "kept_reader", lambda client: None)
    monkeypatch.setattr(writing, "read_ranges", lambda *_, **__: batches(1000, 100))
    return WritePlan(
        sink=Noting,
        config={"key.converter": TEXT, "value.converter": TEXT},
        client=parse_named("localhost:9", {}),
        dead_letters=None,
        is_tolerant=False,
        bytes_max=25_000,
        log_errors=False,
        log_contents=False,
        retry_timeout_s=0,
        retry_pause_s_max=0,
    )


def test_a_task_holds_no_more_than_it_may_however_much_larger_records_are_than_was_thought(plan: WritePlan) -> None:
    result = write_task(plan, (0, [Portion(OffsetRange(*PLACE, 0, 250), None)]))
    assert result.problem is None and result.done == {PLACE: 250} and result.records == 100
    assert [offset for some in Noting.written for offset in some] == list(range(0, 200, 2))
    assert max(map(len, Noting.written)) <= 30
    # Each writer is told where what comes next begins.
    assert Noting.opened == [0, 59, 119, 179]


def test_what_was_written_before_a_failure_is_told(plan: WritePlan) -> None:
    Noting.fails_at = 70
    result = write_task(plan, (0, [Portion(OffsetRange(*PLACE, 0, 250), 7)]))
    assert result.problem is not None and result.done == {PLACE: Noting.written[-1][-1] + 1}
    assert [offset for some in Noting.written for offset in some] == list(range(0, result.done[PLACE], 2))
