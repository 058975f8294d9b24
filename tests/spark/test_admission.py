"""How many offsets a micro-batch takes so that it has no more bytes than wanted, on logs that are lists of sizes."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate

import pytest

pytest.importorskip("pyspark")

from ottla.client.sampling import Position, Sample
from ottla.common.ids import TopicPartition
from ottla.spark.source.admission import RECORD_BYTES_MAX, Admission

MB = 1024 * 1024
BATCH_BYTES = 16_000
LOOK_BYTES = 64 * 1024


class Log:
    """The sizes of records, put into batches of 16 KB or one record."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = list(sizes)
        self.end = len(self.sizes)
        self._before = [0, *accumulate(self.sizes)]
        self._bounds = [0]
        size = 0
        for offset, one in enumerate(self.sizes):
            if size and size + one > BATCH_BYTES:
                self._bounds.append(offset)
                size = 0
            size += one
        self._bounds.append(self.end)

    def bytes(self, start: int, end: int) -> int:
        return self._before[end] - self._before[start]

    def sample(self, offset: int) -> Sample:
        index = bisect_right(self._bounds, offset) - 1
        size, start = 0, self._bounds[index]
        while index + 1 < len(self._bounds) and (not size or size < LOOK_BYTES):
            size += self.bytes(self._bounds[index], self._bounds[index + 1])
            index += 1
        assert start <= offset
        return Sample(offset, self._bounds[index], size, size / (self._bounds[index] - start))


class Cluster:
    def __init__(self, *logs: Sequence[int]) -> None:
        self.logs = {TopicPartition("t", index): Log(sizes) for index, sizes in enumerate(logs)}
        self.looks = 0
        self.looked_bytes = 0
        self.is_blind = False
        self.averages_asked = 0

    def averages(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, float]:
        self.averages_asked += bool(partitions)
        if self.is_blind:
            return {}
        return {one: self.logs[one].bytes(0, self.logs[one].end) / self.logs[one].end for one in partitions}

    def look(self, positions: Sequence[Position]) -> dict[Position, Sample]:
        assert len(set(positions)) == len(positions)
        found = {} if self.is_blind else {(one, at): self.logs[one].sample(at) for one, at in positions}
        self.looks += len(positions)
        self.looked_bytes += sum(one.size_bytes for one in found.values())
        return found

    def work_off(self, bytes_max: int, batches_max: int = 10_000) -> list[int]:
        """The bytes of each batch until nothing is left."""
        admission = Admission(bytes_max, self.look, self.averages)
        starts = dict.fromkeys(self.logs, 0)
        ends = {one: log.end for one, log in self.logs.items()}
        batches: list[int] = []
        while starts != ends:
            reached = admission.ends(starts, ends)
            assert all(starts[one] <= reached[one] <= ends[one] for one in ends)
            assert reached != starts, "a batch that moves nothing is never followed by another"
            batches.append(sum(log.bytes(starts[one], reached[one]) for one, log in self.logs.items()))
            starts = reached
            assert len(batches) <= batches_max
        return batches


def test_even_records_fill_batches_and_little_is_looked_at() -> None:
    cluster = Cluster(*[[100] * 2_000_000] * 4)
    batches = cluster.work_off(64 * MB)
    assert max(batches) <= 64 * MB
    assert len(batches) <= 14  # 763 MB
    assert cluster.looked_bytes <= sum(batches) / 8


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_change_of_sizes_does_not_overfill_a_batch(partitions: int) -> None:
    """From 100 B to 1 MB, and from 1 MB to 100 B, at any place of the log."""
    for small, large in ((1_000_000, 500), (123_457, 77), (5, 900)):
        for log in ([100] * small + [MB] * large, [MB] * large + [100] * small):
            batches = Cluster(*[log] * partitions).work_off(64 * MB, batches_max=60 * partitions)
            assert max(batches) <= 64 * MB


def test_sizes_that_grow_little_by_little_stay_within_the_limit() -> None:
    log = [100 + offset for offset in range(100_000)]
    assert max(Cluster(log).work_off(64 * MB, batches_max=130)) <= 64 * MB


def test_records_of_all_sizes_stay_near_the_limit() -> None:
    chance = random.Random(1)
    log = [chance.choice([50, 100, 500, 20_000]) for _ in range(200_000)]
    batches = Cluster(log).work_off(64 * MB, batches_max=100)
    assert max(batches) <= 64 * MB


@pytest.mark.parametrize("seed", range(3))
def test_a_large_record_here_and_there_is_rarely_seen_but_counts(seed: int) -> None:
    """99.9 % of the records have 100 B, and the others nine tenths of the bytes."""
    chance = random.Random(seed)
    log = [MB if chance.random() < 0.001 else 100 for _ in range(500_000)]
    batches = Cluster(log).work_off(64 * MB, batches_max=60)
    assert max(batches) <= 1.5 * 64 * MB


def test_large_records_between_two_places_come_on_top_and_no_more() -> None:
    island = [MB] * 20
    log = [100] * 300_000 + island + [100] * 300_000
    for seed in range(5):
        assert max(Cluster([100] * seed * 997 + log).work_off(16 * MB, batches_max=60)) <= (16 + len(island)) * MB


def test_a_record_that_is_larger_than_the_limit_is_read_alone() -> None:
    batches = Cluster([5 * MB] * 400).work_off(MB)
    assert batches == [5 * MB] * 400


def test_a_small_partition_beside_a_large_one_moves() -> None:
    cluster = Cluster([100] * 1_000_000, [100])
    admission = Admission(MB, cluster.look, cluster.averages)
    large, small = cluster.logs
    reached = admission.ends({large: 0, small: 0}, {large: 1_000_000, small: 1})
    assert reached[small] == 1
    assert 5_000 < reached[large] <= MB // 100


def test_partitions_take_turns_where_one_record_of_each_is_too_much() -> None:
    cluster = Cluster(*[[MB] * 3] * 200)
    batches = cluster.work_off(16 * MB, batches_max=300)
    assert max(batches) <= 16 * MB


def test_few_records_are_read_without_a_look() -> None:
    cluster = Cluster([100] * 256)
    assert cluster.work_off(256 * RECORD_BYTES_MAX) == [25_600]
    assert cluster.looks == 0


def test_a_query_that_keeps_up_does_not_look() -> None:
    cluster, now = Cluster([100] * 100_000 + [MB] * 1_000), 0.0
    admission = Admission(256 * MB, cluster.look, cluster.averages, clock=lambda: now)
    (one,) = cluster.logs
    for start in range(0, 100_000, 1_000):
        now += 1
        assert admission.ends({one: start}, {one: start + 1_000}) == {one: start + 1_000}
    assert cluster.looks <= 2
    assert cluster.averages_asked <= 1 + 100 / 32
    now += 60
    assert admission.ends({one: 100_000}, {one: 101_000})[one] <= 100_256


def test_where_nothing_can_be_seen_records_are_taken_for_as_large_as_they_may_be() -> None:
    cluster = Cluster([100] * 2_000)
    cluster.is_blind = True
    assert set(cluster.work_off(64 * MB)[:-1]) <= {100 * n for n in range(50, 65)}


def test_the_average_counts_where_nothing_can_be_seen() -> None:
    """As with records in remote storage that takes its time."""
    cluster = Cluster([100] * 2_000_000)
    admission = Admission(64 * MB, lambda _: {}, cluster.averages)
    (one,) = cluster.logs
    assert 500_000 < admission.ends({one: 0}, {one: 2_000_000})[one] <= 64 * MB // 100


def test_of_very_many_partitions_a_part_is_looked_at() -> None:
    logs: list[list[int]] = [[100] * 1_000] * 1_000
    cluster = Cluster(*logs)
    assert max(cluster.work_off(8 * MB, batches_max=40)) <= 8 * MB
    assert cluster.looked_bytes <= 1_000 * 1_000 * 100 / 8
