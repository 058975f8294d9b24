"""What a marker is made of: as few bytes for many partitions as for one."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark")

from ottla.spark.sink.marker import Marker, marker_batch


def offsets(partitions: int) -> dict[str, dict[str, int]]:
    return {"orders": {str(number): 10**9 + number for number in range(partitions)}}


def test_a_marker_takes_no_more_room_for_a_thousand_partitions_than_for_one() -> None:
    few, many = (len(marker_batch("query", Marker("id", 7, offsets(count)))) for count in (1, 1_000))
    assert many == few
    assert len(Marker("id", 7, offsets(1_000)).note()) == len(Marker("id", 7, offsets(1)).note())


def test_a_marker_is_told_by_its_offsets_all_the_same() -> None:
    written = Marker.from_json(Marker("id", 7, offsets(1_000)).to_json())
    assert written == Marker("id", 7, offsets(1_000))
    assert written != Marker("id", 7, {"orders": offsets(1_000)["orders"] | {"5": 0}})


def test_a_marker_of_before_with_all_its_offsets_is_understood() -> None:
    before = json.dumps({"query": "id", "batch": 7, "offsets": offsets(3)})
    assert Marker.from_json(before) == Marker("id", 7, offsets(3))


def test_how_many_records_a_batch_has_is_not_known_where_an_offset_went_back() -> None:
    """Taken for few, all rows of a topic that was made anew would come to the driver."""
    before = Marker("id", 7, {"orders": {"0": 1_000_000, "1": 5}})
    assert Marker("id", 8, {"orders": {"0": 1_000_003, "1": 6}}).records_since(before) == 4
    assert Marker("id", 8, {"orders": {"0": 40_000, "1": 960_010}}).records_since(before) is None
    assert Marker("id", 8, None, digest="unknown").records_since(before) is None
