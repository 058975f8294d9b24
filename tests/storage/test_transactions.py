"""Transactions in the log: the last stable offset, markers, and the index of aborted ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS, append, open_log
from tests.storage.markers import TRANSACTIONAL, marker

SMALL = LogConfig(segment_bytes=700)


class Producer:
    def __init__(self, log: Log, producer_id: int) -> None:
        self.log = log
        self.producer_id = producer_id
        self.sequence = 0

    def write(self, count: int = 1) -> int:
        first = append(
            self.log,
            *[b"x"] * count,
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=self.sequence,
            attributes=TRANSACTIONAL,
        )
        self.sequence += count
        return first

    def end(self, *, commit: bool, coordinator_epoch: int = 7) -> int:
        data = marker(commit=commit, producer_id=self.producer_id, coordinator_epoch=coordinator_epoch)
        result = self.log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
        return result.base_offset


def test_an_open_transaction_holds_the_last_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one, two = Producer(log, 1), Producer(log, 2)
    append(log, b"plain")
    one.write(2)
    two.write()
    append(log, b"plain")
    assert log.last_stable_offset == 1
    one.end(commit=True)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 3
    two.end(commit=False)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset == 7


def test_the_marker_counts_when_it_is_below_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one = Producer(log, 1)
    one.write()
    at = one.end(commit=True)
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    log.high_watermark = at
    assert log.last_stable_offset == 0
    log.high_watermark = at + 1
    assert log.last_stable_offset == at + 1


@pytest.mark.parametrize("commit", [True, False])
def test_a_sequence_of_a_transaction_that_has_ended_is_no_repetition(tmp_path: Path, commit: bool) -> None:
    log = open_log(tmp_path)
    one = Producer(log, 1)
    one.write()
    one.sequence -= 1
    assert one.write() == 0  # a repetition, answered with its offset
    one.end(commit=commit)
    for _ in range(2):  # also after a restart, when a snapshot has brought back the last batch
        one.sequence = 0
        with pytest.raises(ApiError) as refused:
            one.write()
        assert refused.value.code is ErrorCode.UNKNOWN_PRODUCER_ID
        log.close()
        one.log = log = open_log(tmp_path, clean=True)
    one.sequence = 1
    one.write()


def test_aborted_transactions_come_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    early, late = Producer(log, 1), Producer(log, 2)
    began = [(1, early.write()), (2, late.write())]
    late.end(commit=False)
    early.end(commit=False)
    assert log.aborted_transactions(0, log.log_end_offset) == began


def test_aborted_transactions_between_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    aborted = []
    for n in range(10):
        producer = Producer(log, n)
        first = producer.write(2)
        append(log, b"between")
        last = producer.end(commit=n % 2 == 0)
        if n % 2:
            aborted.append((n, first, last))
    assert len(log.segments) > 2
    log.high_watermark = end = log.log_end_offset
    assert log.aborted_transactions(0, end) == [(n, first) for n, first, _ in aborted]
    for start in range(end):
        for upper in range(start + 1, end + 1):
            found = log.aborted_transactions(start, upper)
            needed = [(n, first) for n, first, last in aborted if first < upper and last >= start]
            assert [one for one in found if one in needed] == needed
            assert all(first < upper for _, first in found)


def test_a_transaction_over_many_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    long, short = Producer(log, 1), Producer(log, 2)
    first = long.write()
    for n in range(20):
        short.write()
        short.end(commit=n % 2 == 0)
        long.write()
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == first
    long.end(commit=False)
    log.high_watermark = log.log_end_offset
    assert (1, first) in log.aborted_transactions(0, 5)
    assert (1, first) in log.aborted_transactions(30, 35)


@pytest.mark.parametrize("how", ["clean", "crash", "no snapshots", "no index"])
def test_all_of_it_survives_a_restart(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path, SMALL)
    producers = [Producer(log, n) for n in range(6)]
    for n, producer in enumerate(producers):
        producer.write(2)
        if n % 3:
            producer.end(commit=n % 3 == 1)
    log.high_watermark = end = log.log_end_offset
    stable, aborted, described = log.last_stable_offset, log.aborted_transactions(0, end), log.producers.describe()
    assert (stable, len(aborted)) == (0, 2)
    if how != "crash":
        log.close()
    for path in tmp_path.glob({"no snapshots": "*.snapshot", "no index": "*.txnindex"}.get(how, "nothing")):
        path.unlink()
    again = open_log(tmp_path, SMALL, clean=how != "crash")
    again.high_watermark = again.log_end_offset
    assert again.last_stable_offset == stable
    assert again.aborted_transactions(0, end) == aborted
    assert again.producers.describe() == described


def test_writes_outside_of_an_open_transaction_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    Producer(log, 1).write()
    with pytest.raises(ApiError) as caught:
        append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=1)
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_markers_of_old_coordinators_and_epochs_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one = Producer(log, 1)
    one.write()
    one.end(commit=True, coordinator_epoch=8)
    one.write()
    with pytest.raises(ApiError) as caught:
        one.end(commit=True, coordinator_epoch=7)
    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    data = marker(commit=False, producer_id=1, producer_epoch=5, coordinator_epoch=8)
    log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    with pytest.raises(ApiError) as caught:
        one.write()
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_truncation_opens_a_transaction_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    one = Producer(log, 1)
    first = one.write()
    for _ in range(10):
        append(log, b"plain")
    at = one.end(commit=False)
    log.high_watermark = log.log_end_offset
    assert log.aborted_transactions(0, at + 1)
    log.truncate_to(at, NOW_MS)
    assert not log.aborted_transactions(0, at)
    assert log.last_stable_offset == first
    one.end(commit=False)
    log.high_watermark = log.log_end_offset
    assert log.aborted_transactions(0, at + 1) == [(1, first)]
