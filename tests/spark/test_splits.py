"""Ranges are put together to about one split per core, of even sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from ottla.client.fetching import OffsetRange
from ottla.common.ids import TopicPartition
from ottla.spark.source.offsets import limited
from ottla.spark.source.splits import SPLIT_RECORDS_MIN, make_splits, whole_splits

SIZES = st.lists(st.integers(0, 50_000), min_size=1, max_size=30)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange("t", number, 10 * number, 10 * number + size) for number, size in enumerate(sizes)]


@given(SIZES, st.integers(1, 16), st.none() | st.integers(1, 40), st.none() | st.integers(1_000, 100_000))
def test_every_offset_is_in_exactly_one_split(
    sizes: list[int], cores: int, at_least: int | None, records_max: int | None
) -> None:
    ranges = ranges_of(sizes)
    splits = make_splits(ranges, cores, at_least=at_least, records_max=records_max)
    total = sum(sizes)
    for wanted in ranges:
        parts = sorted(one for split in splits for one in split if one.where == wanted.where)
        assert sum(one.size for one in parts) == wanted.size
        position = wanted.start
        for one in parts:
            assert one.start == position
            position = one.end
    loads = [sum(one.size for one in split) for split in splits]
    assert all(len({one.where for one in split}) == len(split) for split in splits)
    if total:
        assert max(loads) <= 1.2 * total / len(splits) + 1
        assert records_max is None or max(loads) <= records_max
        assert len(splits) >= min(at_least or 1, total)


def test_a_small_batch_is_one_task() -> None:
    assert len(make_splits(ranges_of([5] * 20), cores=8)) == 1


def test_one_large_partition_keeps_all_cores_busy() -> None:
    loads = [sum(one.size for one in split) for split in make_splits(ranges_of([1_000_000]), cores=4)]
    assert loads == [250_000] * 4


def test_partitions_stay_whole_where_that_is_even() -> None:
    splits = make_splits(ranges_of([SPLIT_RECORDS_MIN * 10] * 8), cores=4)
    assert [len(split) for split in splits] == [2, 2, 2, 2]
    assert all(one.size == SPLIT_RECORDS_MIN * 10 for split in splits for one in split)


def test_a_limit_is_shared_by_what_there_is() -> None:
    starts = {TopicPartition("t", 0): 0, TopicPartition("t", 1): 100, TopicPartition("t", 2): 5}
    ends = {TopicPartition("t", 0): 900, TopicPartition("t", 1): 200, TopicPartition("t", 2): 5}
    assert list(limited(starts, ends, 100).values()) == [90, 110, 5]
    assert limited(starts, ends, 1_000) == ends
    assert list(limited(starts, ends, 1).values()) == [1, 101, 5]


def test_few_records_of_many_bytes_are_spread() -> None:
    one = [OffsetRange("t", 0, 0, 256)]
    assert len(make_splits(one, 8)) == 1
    assert len(make_splits(one, 8, size_bytes=256 * 1024 * 1024)) == 8
    assert len(make_splits(one, 8, size_bytes=9 * 1024 * 1024)) == 2
    assert len(make_splits([OffsetRange("t", 0, 0, 3)], 8, size_bytes=256 * 1024 * 1024)) == 3


def test_one_huge_partition_is_read_by_all_cores() -> None:
    splits = make_splits([OffsetRange("t", 0, 0, 10_000_000)], 8)
    assert [sum(one.size for one in split) for split in splits] == [1_250_000] * 8
    bounded = make_splits([OffsetRange("t", 0, 0, 10_000_000)], 8, records_max=100_000)
    assert max(sum(one.size for one in split) for split in bounded) == 100_000


def test_whole_partitions_of_one_number_are_read_together_and_never_cut() -> None:
    ranges = [OffsetRange(topic, number, 0, 10 * (number + 1)) for topic in ("a", "b") for number in range(5)]
    splits = whole_splits([*ranges, OffsetRange("c", 9, 4, 4)], 2)
    assert sorted(each for split in splits for each in split) == sorted(ranges)
    numbers = [{each.partition for each in split} for split in splits]
    assert len(splits) == 2 and not numbers[0] & numbers[1]
