"""Sequences, duplicates and fencing: Kafka's rules, over restarts as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import TRANSACTIONAL_BIT
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import AppendResult, Origin
from tests.storage.batches import NOW_MS, append, batch, open_log

PRODUCER = 4711


def send(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = PRODUCER) -> AppendResult:
    data = batch(
        *[b"%d" % n for n in range(count)], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    result = log.append(data, leader_epoch=0, now_ms=NOW_MS)
    log.high_watermark = log.log_end_offset
    return result


def refused(log: Log, sequence: int, count: int = 1, *, epoch: int = 0) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(ApiError) as caught:
        send(log, sequence, count, epoch=epoch)
    assert log.log_end_offset == end
    return caught.value.code


def test_a_repeated_batch_gets_its_first_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for n in range(6):
        assert send(log, n * 3, 3).base_offset == n * 3
    for n in range(1, 6):
        again = send(log, n * 3, 3)
        assert (again.base_offset, again.last_offset, again.duplicate) == (n * 3, n * 3 + 2, True)
    assert log.log_end_offset == 18


def test_the_sixth_last_batch_is_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for n in range(6):
        send(log, n)
    assert refused(log, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_repeated_start_with_another_length_is_no_duplicate(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, 3)
    assert refused(log, 0, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    assert refused(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1).base_offset == 1


def test_sequences_wrap(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 2**31 - 2, 2)
    assert send(log, 0).base_offset == 2
    log = open_log(tmp_path / "inside")
    send(log, 2**31 - 2, 4)  # 2^31-2, 2^31-1, 0, 1
    assert send(log, 2**31 - 2, 4).duplicate
    assert send(log, 2).base_offset == 4


def test_an_unknown_producer_may_begin_anywhere(tmp_path: Path) -> None:
    # Since KIP-360: its records may have been deleted, and no broker answers UNKNOWN_PRODUCER_ID any more.
    assert send(open_log(tmp_path), 17).base_offset == 0


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    assert refused(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=1)
    assert refused(log, 1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log, 0, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_disturb_one_another(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0, producer_id=1)
    append(log, b"plain")
    send(log, 0, producer_id=2)
    send(log, 1, producer_id=1)
    assert [one.last_sequence for one in log.producers.describe()] == [1, 0]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("config", [LogConfig(), LogConfig(segment_bytes=400)], ids=["one segment", "many segments"])
def test_five_batches_are_known_after_a_restart(tmp_path: Path, clean: bool, config: LogConfig) -> None:
    log = open_log(tmp_path, config)
    for n in range(12):
        send(log, n * 2, 2)
        append(log, b"noise")
    if clean:
        log.close()
    again = open_log(tmp_path, config, clean=clean)
    for n in range(7, 12):
        assert (send(again, n * 2, 2).base_offset, again.log_end_offset) == (n * 3, 36)
    assert refused(again, 26) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(again, 24).base_offset == 36


def test_state_outlives_the_records(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=400, retention_ms=1000)
    log = open_log(tmp_path, config)
    for n in range(10):
        send(log, n)
    log.delete_old_segments(NOW_MS + 10_000)
    assert log.log_start_offset == log.log_end_offset == 10
    again = open_log(tmp_path, config)  # as after kill -9
    assert again.log_start_offset == 10
    assert refused(again, 11) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(again, 10).base_offset == 10


def test_a_damaged_snapshot_is_replaced_by_a_replay(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=400))
    for n in range(10):
        send(log, n)
    log.close()
    for damage in (b"", b"\0" * 30, b"\0\1rubbish"):
        for path in tmp_path.glob("*.snapshot"):
            path.write_bytes(damage)
        again = open_log(tmp_path, LogConfig(segment_bytes=400), clean=True)
        assert send(again, 9).duplicate
        assert refused(again, 11) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        again.close()
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    assert send(open_log(tmp_path, LogConfig(segment_bytes=400), clean=True), 9).duplicate


def test_silent_producers_expire_by_the_brokers_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    old = batch(b"x", timestamp=5, producer_id=1, producer_epoch=0, base_sequence=0)
    log.append(old, leader_epoch=0, now_ms=NOW_MS)
    assert log.producers.expire(NOW_MS + 999, 1000) == 0
    assert log.producers.expire(NOW_MS + 1000, 1000) == 1
    assert not log.producers.entries


# --- the first batch of a transaction


def begin(log: Log, sequence: int, *, v2: bool) -> ErrorCode:
    """As a transactional batch comes from a client, after its coordinator agreed."""
    if PRODUCER not in log.producers.entries:
        log.producers.verify(PRODUCER, 0, sequence, v2, NOW_MS)
    data = batch(b"x", producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence, attributes=TRANSACTIONAL_BIT)
    try:
        log.append(data, leader_epoch=0, now_ms=NOW_MS)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


OUT_OF_ORDER, TAKEN = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.NONE


@pytest.mark.parametrize(
    ("v2", "refused_before", "sent"),
    [
        # Transactions v2 begin at 0.
        (True, [], [(3, OUT_OF_ORDER), (0, TAKEN), (1, TAKEN)]),
        (True, [0], [(1, OUT_OF_ORDER), (0, TAKEN)]),
        # Before that they may begin anywhere, but not behind a batch that was sent earlier and is to come again.
        (False, [], [(3, TAKEN), (4, TAKEN)]),
        (False, [3], [(4, OUT_OF_ORDER), (3, TAKEN), (4, TAKEN)]),
        (False, [5, 3], [(5, OUT_OF_ORDER), (4, OUT_OF_ORDER), (3, TAKEN)]),
    ],
)
def test_a_transaction_begins_with_its_first_batch(
    tmp_path: Path, v2: bool, refused_before: list[int], sent: list[tuple[int, ErrorCode]]
) -> None:
    log = open_log(tmp_path)
    for sequence in refused_before:  # by the coordinator, so they never got to the log
        log.producers.verify(PRODUCER, 0, sequence, v2, NOW_MS)
    assert [(sequence, begin(log, sequence, v2=v2)) for sequence, _ in sent] == sent


def test_what_was_never_verified_is_forgotten_with_silent_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.producers.verify(PRODUCER, 0, 3, False, NOW_MS)
    log.producers.expire(NOW_MS + 1_000, 1_000)
    assert begin(log, 7, v2=False) is TAKEN


def test_a_newer_epoch_begins_anew(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.producers.verify(PRODUCER, 0, 3, False, NOW_MS)
    log.producers.verify(PRODUCER, 1, 9, False, NOW_MS)
    data = batch(b"x", producer_id=PRODUCER, producer_epoch=1, base_sequence=9, attributes=TRANSACTIONAL_BIT)
    assert log.append(data, leader_epoch=0, now_ms=NOW_MS).base_offset == 0


def test_batches_of_a_coordinator_have_no_sequence(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for count in (1, 3):
        data = batch(*[b"x"] * count, producer_id=PRODUCER, producer_epoch=0, attributes=TRANSACTIONAL_BIT)
        log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
        (snapshot,) = log.producers.snapshot_entries()
        assert snapshot.last_sequence == -1


def test_a_snapshot_brings_back_where_the_last_batch_without_a_sequence_is(tmp_path: Path) -> None:
    """Compaction leaves it in place, as the memory of its producer."""
    log = open_log(tmp_path)
    data = batch(b"a", b"b", producer_id=PRODUCER, producer_epoch=0, attributes=TRANSACTIONAL_BIT)
    log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.close()
    again = open_log(tmp_path, clean=True, recovery_point=2)
    assert again.producers.snapshot_entries() == log.producers.snapshot_entries()
    assert again.producers.snapshot_entries()[0].last_offset == 1


# --- behind a batch that was refused before the log was asked

FEW = ErrorCode.NOT_ENOUGH_REPLICAS
# delivery.timeout.ms of producers.
PATIENCE_MS = 120_000


def note_refused(log: Log, sequence: int, *, epoch: int = 0, code: ErrorCode = FEW) -> None:
    data = batch(b"x", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
    log.note_refused(data, code, NOW_MS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("code", [FEW, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_who_comes_behind_a_refused_batch_gets_its_error_until_it_is_there(
    tmp_path: Path, known: bool, code: ErrorCode
) -> None:
    """Of a producer that is not known any sequence would be taken, and the first one would come too late."""
    log = open_log(tmp_path)
    first = int(known)
    if known:
        send(log, 0)
    for sequence in (first, first + 1):
        note_refused(log, sequence, code=code)
    assert refused(log, first + 2) is code
    assert refused(log, first + 1) is code
    assert [send(log, sequence).base_offset for sequence in range(first, first + 4)] == [*range(first, first + 4)]
    assert refused(log, first + 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_was_there_already_is_not_waited_for(tmp_path: Path) -> None:
    """It had too few replicas when it was written, and too few are in sync when it comes again; so for the next one."""
    log = open_log(tmp_path)
    assert send(log, 0).base_offset == 0
    note_refused(log, 0)
    note_refused(log, 1)
    assert refused(log, 2) is FEW
    assert send(log, 0).duplicate
    assert refused(log, 2) is FEW
    assert [send(log, sequence).base_offset for sequence in (1, 2)] == [1, 2]


def test_who_comes_behind_a_refused_batch_shortly_after_a_start_gets_its_error(tmp_path: Path) -> None:
    """A snapshot brings back the last batch alone, and the others are looked for first."""
    log = open_log(tmp_path)
    for sequence in range(3):
        send(log, sequence)
    log.close()
    log = open_log(tmp_path, clean=True)
    note_refused(log, 3)
    assert refused(log, 4) is FEW
    assert [send(log, sequence).base_offset for sequence in (3, 4)] == [3, 4]


def test_a_refused_batch_that_another_broker_has_taken_is_not_waited_for(tmp_path: Path) -> None:
    """While that one led."""
    log = open_log(tmp_path)
    note_refused(log, 0)
    for sequence in range(2):
        data = batch(b"x", producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence, leader_epoch=0)
        data[:8] = sequence.to_bytes(8, "big")
        assert log.append_fetched(memoryview(data), NOW_MS) == len(data)
    assert refused(log, 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 2).base_offset == 2


def test_a_new_epoch_does_not_wait_for_what_was_refused_of_the_old(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 0)
    note_refused(log, 1)
    assert send(log, 0, epoch=1).base_offset == 1


def test_a_refused_batch_that_does_not_come_again_is_forgotten(tmp_path: Path) -> None:
    """Its producer has given it up, and goes on: as an unknown one, it may begin anywhere."""
    log = open_log(tmp_path)
    note_refused(log, 0)
    data = batch(b"x", producer_id=PRODUCER, producer_epoch=0, base_sequence=1)
    with pytest.raises(ApiError):
        log.append(data, leader_epoch=0, now_ms=NOW_MS + PATIENCE_MS)
    assert log.append(data, leader_epoch=0, now_ms=NOW_MS + PATIENCE_MS + 1).base_offset == 0


@pytest.mark.parametrize("data", [b"", b"x" * 60, batch(b"of nobody")])
def test_what_names_no_producer_holds_nobody_up(tmp_path: Path, data: bytes) -> None:
    log = open_log(tmp_path)
    log.note_refused(data, FEW, NOW_MS)
    assert send(log, 0).base_offset == 0
