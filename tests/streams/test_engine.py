"""What runs on executors, without Spark: records of Arrow batches in their order, partitions that nobody planned."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from ottla.client.settings import parse_named  # noqa: E402
from ottla.common.errors import OttlaError  # noqa: E402
from ottla.spark.pipeline.verdicts import Retry, judge  # noqa: E402
from ottla.streams import StreamsBuilder, serdes  # noqa: E402
from ottla.streams.engine import records, running  # noqa: E402
from ottla.streams.engine.identity import serde_name, shape_of  # noqa: E402
from ottla.streams.errors import DEFAULT_HANDLING  # noqa: E402
from ottla.streams.operators.tables import ChangeSerde  # noqa: E402

Given = tuple[str, int, int, bytes | None, int, Any]


def batch(*rows: Given) -> Any:
    topics, partitions, offsets, values, times, headers = zip(*rows, strict=True)
    arrays = [
        pa.array(topics, pa.string()),
        pa.array(partitions, pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array([b"k"] * len(rows), pa.binary()),
        pa.array(values, pa.binary()),
        pa.array([each * 1000 for each in times], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        pa.array(headers, running._HEADERS),
    ]
    names = ["topic", "partition", "offset", "key", "value", "timestamp", "headers"]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def test_records_of_several_topics_are_taken_by_time_and_those_of_one_by_offset() -> None:
    queues: dict[str, Any] = {}
    head = [{"key": "h", "value": b"1"}]
    mixed = batch(("b", 0, 0, b"b0", 20, None), ("a", 0, 0, b"a0", 30, head), ("a", 0, 1, None, 10, None))
    for given in (mixed, batch(("b", 0, 1, b"b1", 25, None), ("b", 0, 2, b"b2", 40, None))):
        for topic, partition, part in records.by_partition(given):
            assert partition == 0
            queues.setdefault(topic, []).extend(records.rows_of(part))
    ordered = [(topic, row[0], row[3]) for topic, row in records.in_order(queues)]
    assert ordered == [("b", 0, 20), ("b", 1, 25), ("a", 0, 30), ("a", 1, 10), ("b", 2, 40)]
    assert queues["a"][0][4] == (("h", b"1"),) and queues["a"][1][2] is None


def test_records_that_came_together_are_those_of_each_partition_in_their_order() -> None:
    places = [("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("b", 1, 0), ("a", 0, 2)]
    given = batch(*((topic, partition, offset, b"v", 1, None) for topic, partition, offset in places))
    found = [(topic, number, part["offset"].to_pylist()) for topic, number, part in records.by_partition(given)]
    assert found == [("a", 0, [0, 1]), ("a", 1, [0]), ("b", 1, [0]), ("a", 0, [2])]


def test_what_is_emitted_comes_out_as_it_went_in() -> None:
    rows = running._Rows()
    rows.add("t", b"k", None, 5, (("h", None),), 3)
    rows.add("u", None, b"v", 6, (), None)
    (made,) = rows.rest()
    first, second = made.to_pylist()
    assert (first["topic"], first["partition"], first["value"]) == ("t", 3, None)
    assert first["headers"] == [{"key": "h", "value": None}] and second["headers"] is None
    assert second["timestamp"].timestamp() == 0.006
    assert list(rows.rest()) == []


def test_a_partition_that_was_added_while_it_runs_starts_the_application_again() -> None:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream("in").to("out")
    run = running.TopologyRun(
        builder.build(), "app", parse_named("127.0.0.1:1", {}), {"in": 1}, DEFAULT_HANDLING, "generation"
    )
    with pytest.raises(OttlaError, match="'in' has got partitions") as raised:
        list(run(iter([batch(("in", 1, 0, b"v", 1, None))]), Counter()))
    assert judge(raised.value).retry is Retry.UNLIMITED


def test_the_shape_of_a_topology_is_the_same_text_in_every_process() -> None:
    class Own:
        def serialize(self, topic: str, value: Any) -> bytes:
            return b""

        def deserialize(self, topic: str, data: bytes) -> Any:
            return None

    assert serde_name(ChangeSerde(Own())) == "ChangeSerde(Own)"
    builder = StreamsBuilder(key=serdes.string, value=Own())
    builder.stream("in").group_by(lambda key, value: key).reduce(max, store="kept")
    shape = shape_of(builder.build(), "app")
    assert shape["stores"]["kept"]["value"] == "Own" and shape["repartition"] == ["kept-repartition"]
