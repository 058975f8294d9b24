"""Compaction of what producers with ids wrote: sequences survive, aborted data goes, markers go last."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.records import batch as v2
from ottla.storage.log import Log
from tests.storage.batches import NOW_MS, open_log
from tests.storage.cleaning import COMPACT, DAY_MS, clean, headers, keyed, pairs, put, put_marker, records

TXN = v2.TRANSACTIONAL_BIT


def idempotent(log: Log, sequence: int, *values: tuple[bytes | None, bytes | None], producer_id: int = 7) -> int:
    return put(log, *values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


def transactional(log: Log, producer_id: int, sequence: int, *values: tuple[bytes | None, bytes | None]) -> int:
    return put(log, *values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, attributes=TXN)


def bounds(log: Log) -> list[tuple[int, int, int]]:
    return [(header.base_offset, header.last_offset, header.record_count) for _, _, header in headers(log)]


def test_the_last_batch_of_a_producer_stays_empty_and_its_sequence_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    idempotent(log, 0, (b"a", b"1"), (b"b", b"1"))
    idempotent(log, 2, (b"a", b"2"), (b"b", b"2"), (b"c", b"2"))
    put(log, (b"a", b"3"), (b"b", b"3"), (b"c", b"3"))
    put(log, (b"end", b"1"))
    clean(log)
    assert bounds(log) == [(2, 4, 0), (5, 7, 3), (8, 8, 1)]
    empty = next(header for _, _, header in headers(log))
    assert (empty.producer_id, empty.base_sequence, empty.last_sequence, empty.codec) == (7, 2, 4, 0)
    log.close()
    for snapshot in tmp_path.glob("*.snapshot"):  # so that the state is what the batches say
        snapshot.unlink()
    again = open_log(tmp_path, COMPACT)
    assert idempotent(again, 5, (b"d", b"1")) == 9
    with pytest.raises(ApiError) as caught:
        idempotent(again, 9, (b"d", b"1"))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_empty_batch_goes_once_its_producer_wrote_more(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    idempotent(log, 0, (b"a", b"1"))
    put(log, (b"a", b"2"))
    put(log, (b"end", b"1"))
    clean(log)
    assert bounds(log) == [(0, 0, 0), (1, 1, 1), (2, 2, 1)]
    idempotent(log, 1, (b"z", b"1"))
    clean(log)
    assert bounds(log) == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]


def test_a_batch_of_an_expired_producer_needs_no_memory(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    idempotent(log, 0, (b"a", b"1"))
    put(log, (b"a", b"2"))
    put(log, (b"end", b"1"))
    log.producers.expire(NOW_MS + 2 * DAY_MS, DAY_MS)
    clean(log)
    assert bounds(log) == [(1, 1, 1), (2, 2, 1)]


def test_a_duplicate_is_recognised_after_its_batch_lost_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    first = idempotent(log, 0, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"))
    clean(log)
    log.close()
    again = open_log(tmp_path, COMPACT)
    data = keyed((b"a", b"1"), (b"b", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    result = again.append(data, leader_epoch=0, now_ms=NOW_MS)
    assert (result.duplicate, result.base_offset) == (True, first)


def test_aborted_data_goes_and_does_not_supersede(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"good"), (b"b", b"good"))
    transactional(log, 1, 0, (b"a", b"bad"), (b"c", b"bad"))
    put_marker(log, 1, commit=False)
    put(log, (b"end", b"1"))
    clean(log)
    assert pairs(log) == [(0, b"a", b"good"), (1, b"b", b"good"), (5, b"end", b"1")]


def test_committed_data_supersedes(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"old"))
    transactional(log, 1, 0, (b"a", b"new"))
    put_marker(log, 1, commit=True)
    put(log, (b"end", b"1"))
    clean(log)
    assert pairs(log) == [(1, b"a", b"new"), (3, b"end", b"1")]


def test_transactions_of_several_producers_between_one_another(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    transactional(log, 1, 0, (b"a", b"1"))
    transactional(log, 2, 0, (b"a", b"2"), (b"b", b"2"))
    put(log, (b"b", b"plain"))
    put_marker(log, 2, commit=False)
    transactional(log, 1, 1, (b"c", b"1"))
    put_marker(log, 1, commit=True)
    transactional(log, 2, 2, (b"d", b"2"))
    put_marker(log, 2, commit=True)
    put(log, (b"end", b"1"))
    clean(log)
    kept = {(one.key, one.value) for one in records(log)}
    assert kept == {(b"a", b"1"), (b"b", b"plain"), (b"c", b"1"), (b"d", b"2"), (b"end", b"1")}


def test_state_is_carried_from_segment_to_segment(tmp_path: Path) -> None:
    """KAFKA-8351: data, more data and the marker of one transaction in three segments."""
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"good"))
    transactional(log, 1, 0, (b"a", b"bad"))
    log.roll(NOW_MS)
    transactional(log, 1, 1, (b"b", b"bad"))
    log.roll(NOW_MS)
    put_marker(log, 1, commit=False)
    put(log, (b"end", b"1"))
    clean(log)
    assert pairs(log) == [(0, b"a", b"good"), (4, b"end", b"1")]


def test_an_abort_in_the_active_segment_counts(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"good"))
    transactional(log, 1, 0, (b"a", b"bad"))
    log.roll(NOW_MS)
    put_marker(log, 1, commit=False)
    clean(log, roll=False)
    assert pairs(log) == [(0, b"a", b"good")]
    assert [one.last_offset for segment in log.segments for one in segment.txns.entries()] == [2]


def test_an_open_transaction_stops_compaction_before_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW_MS)
    transactional(log, 1, 0, (b"a", b"open"))
    log.roll(NOW_MS)
    put(log, (b"a", b"3"))
    clean(log)
    assert [value for _, _, value in pairs(log)] == [b"2", b"open", b"3"]
    put_marker(log, 1, commit=False)
    clean(log)
    assert [value for _, _, value in pairs(log)] == [b"3"]


def test_a_marker_stays_for_its_horizon_after_the_data_is_gone(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    transactional(log, 1, 0, (b"a", b"1"))
    put_marker(log, 1, commit=True)
    transactional(log, 1, 1, (b"x", b"1"))  # the producer goes on, so nothing is kept for its sake
    put_marker(log, 1, commit=True)
    put(log, (b"a", b"2"))
    clean(log, NOW_MS)
    # This round still saw the transaction's data: the marker is kept without a horizon.
    assert [header.has_delete_horizon for _, _, header in headers(log) if header.is_control] == [False, False]
    put(log, (b"y", b"1"))
    clean(log, NOW_MS)
    marker = next(header for _, _, header in headers(log) if header.is_control)
    assert (marker.base_offset, marker.base_timestamp) == (1, NOW_MS + DAY_MS)
    put(log, (b"y", b"2"))
    clean(log, NOW_MS + DAY_MS - 1)
    assert [header.base_offset for _, _, header in headers(log) if header.is_control] == [1, 3]
    put(log, (b"y", b"3"))
    clean(log, NOW_MS + DAY_MS)
    assert [header.base_offset for _, _, header in headers(log) if header.is_control] == [3]


def test_the_transaction_index_follows_what_is_left(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    transactional(log, 1, 0, (b"a", b"bad"))
    put_marker(log, 1, commit=False)
    transactional(log, 1, 1, (b"b", b"bad"))
    put_marker(log, 1, commit=False)
    put(log, (b"end", b"1"))
    clean(log)
    # Data of the first is gone; of the second an empty batch is left, for the producer's sequence, and the index knows.
    assert bounds(log) == [(1, 1, 1), (2, 2, 0), (3, 3, 1), (4, 4, 1)]
    assert log.aborted_transactions(0, 5) == [(1, 0), (1, 2)]
    put(log, (b"y", b"1"))
    clean(log)
    assert log.aborted_transactions(0, 6) == [(1, 2)]
    log.close()
    assert open_log(tmp_path, COMPACT).aborted_transactions(0, 6) == [(1, 2)]


def test_an_epoch_that_only_a_marker_remembers(tmp_path: Path) -> None:
    """A producer was fenced: its last entry is a marker of a higher epoch, which stays for the fencing's sake."""
    log = open_log(tmp_path, COMPACT)
    transactional(log, 1, 0, (b"a", b"1"))
    put_marker(log, 1, commit=False, epoch=1)
    put(log, (b"a", b"2"))
    for round_number in range(4):
        put(log, (b"y", b"%d" % round_number))
        clean(log, NOW_MS + 2 * round_number * DAY_MS)
    assert [(header.base_offset, header.record_count) for _, _, header in headers(log) if header.is_control] == [(1, 0)]


def test_an_abort_of_long_ago_does_not_touch_what_its_producer_committed_since(tmp_path: Path) -> None:
    """The map pass begins with the dirty part and never sees the marker that ended the old transaction."""
    log = open_log(tmp_path, COMPACT)
    put(log, (b"k", b"v1"))
    transactional(log, 1, 0, (b"other", b"bad"))
    put_marker(log, 1, commit=False)
    clean(log)
    transactional(log, 1, 1, (b"k", None))
    put_marker(log, 1, commit=True)
    put(log, (b"end", b"1"))
    for day in range(3):
        clean(log, NOW_MS + 2 * day * DAY_MS)
    assert pairs(log) == [(5, b"end", b"1")]


def test_a_transaction_that_began_in_the_clean_part_is_aborted_in_the_dirty_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    put(log, (b"k", b"good"))
    log.roll(NOW_MS)
    transactional(log, 1, 0, (b"x", b"bad"))
    log.roll(NOW_MS)
    transactional(log, 1, 1, (b"k", b"bad"))
    put_marker(log, 1, commit=False)
    put(log, (b"end", b"1"))
    log.cleaned_offset = 2
    clean(log)
    assert pairs(log) == [(0, b"k", b"good"), (4, b"end", b"1")]


def test_a_marker_that_lost_its_record_still_fences_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    transactional(log, 1, 0, (b"a", b"bad"))
    put_marker(log, 1, commit=False, epoch=1)
    put(log, (b"end", b"1"))
    for day in range(3):
        clean(log, NOW_MS + 2 * day * DAY_MS)
    assert (1, 1, 0) in bounds(log)
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    again = open_log(tmp_path, COMPACT)
    (line,) = again.producers.describe()
    assert (line.producer_epoch, line.current_txn_start_offset) == (1, -1)
    with pytest.raises(ApiError) as caught:
        transactional(again, 1, 1, (b"a", b"late"))
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_that_lost_its_record_still_ends_its_transaction_after_a_crash(tmp_path: Path) -> None:
    """A snapshot may be older: it knows the transaction as open."""
    log = open_log(tmp_path, COMPACT)
    transactional(log, 1, 0, (b"a", b"bad"))
    log.roll(NOW_MS)
    put_marker(log, 1, commit=False, epoch=1)
    put(log, (b"end", b"1"))
    entries = log.snapshots.latest(1)
    assert entries is not None
    for day in range(3):
        clean(log, NOW_MS + 2 * day * DAY_MS)
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    log.snapshots.write(1, entries[1])
    again = open_log(tmp_path, COMPACT, recovery_point=1)
    again.high_watermark = again.log_end_offset
    assert again.last_stable_offset == again.log_end_offset
