"""A power cut takes what was not synced, and gives back names that were removed: what the log makes of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from ottla.testing.simulation.durable_disk import DurableDisk, SyncedOnly
from tests.storage.batches import NOW_MS, append, open_log, read_all
from tests.storage.markers import TRANSACTIONAL, marker

CONFIG = LogConfig(index_interval_bytes=1)


def after_a_power_cut(disk: DurableDisk, target: Path, log: Log, *, clean: bool = False) -> Log:
    disk.image(target, SyncedOnly())
    log = open_log(target, log.config, recovery_point=log.recovery_point, clean=clean)
    log.high_watermark = log.log_end_offset
    return log


def test_a_time_index_that_lacks_its_end_does_not_age_the_segment(tmp_path: Path) -> None:
    """Of the active segment no index is synced; the one of offsets may reach the disk alone."""
    log = open_log(tmp_path, CONFIG)
    for n in range(20):
        append(log, b"%d" % n, timestamp=NOW_MS + 1000 if n == 5 else NOW_MS)
    log.segments[-1].finish()
    log.flush()
    append(log, b"more", timestamp=NOW_MS)
    log.segments[-1].path(".timeindex").write_bytes(b"")
    again = open_log(tmp_path, CONFIG, recovery_point=log.recovery_point)
    found = again.offset_for_timestamp(NOW_MS + 1)
    assert found is not None and found.offset == 5
    assert again.segments[0].largest_timestamp() == NOW_MS + 1000


def test_the_cut_of_a_recovery_is_durable(tmp_path: Path) -> None:
    """Everything before the cut was synced long ago: no flush comes back to the file."""
    disk = DurableDisk(tmp_path / "disk")
    log = open_log(tmp_path / "disk", CONFIG, disk)
    append(log, b"synced")
    log.flush()
    with log.segments[-1].path(".log").open("ab") as file:
        file.write(bytes(100))
    disk.fsync_path(log.segments[-1].path(".log"))
    log = open_log(tmp_path / "disk", CONFIG, disk, recovery_point=log.recovery_point)
    log.close()
    again = after_a_power_cut(disk, tmp_path / "after", log, clean=True)
    assert again.size_bytes == log.size_bytes
    append(again, b"next")
    assert read_all(again) == [(0, b"synced"), (1, b"next")]


def _follow(log: Log, first: int, end: int, epoch: int) -> None:
    for n in range(first, end):
        append(log, b"%d of leader %d" % (n, epoch), leader_epoch=epoch)


def _values(log: Log) -> list[bytes | None]:
    return [value for _, value in read_all(log)]


@pytest.mark.parametrize("synced", [0, 12])
def test_a_batch_that_was_cut_off_is_not_back_before_the_segment_that_took_its_place(
    tmp_path: Path, synced: int
) -> None:
    """Seed 3982 of the simulation: the truncation was not synced, the next segment was."""
    log = open_log(tmp_path, CONFIG)
    _follow(log, 0, 13, 0)
    log.flush()
    path = log.segments[0].path(".log")
    with_the_old_end = path.read_bytes()
    log.truncate_to(12, NOW_MS)
    log.roll(NOW_MS)
    _follow(log, 12, 14, 1)
    expected = _values(log)
    path.write_bytes(with_the_old_end)
    for _ in range(2):  # the cut is there to stay
        again = open_log(tmp_path, CONFIG, recovery_point=synced)
        assert (again.log_end_offset, again.leader_epochs.entries) == (14, [(0, 0), (1, 12)])
        assert _values(again) == expected
    _follow(again, 14, 15, 1)
    assert len(read_all(again)) == 15


def test_a_segment_that_was_cut_off_is_not_back_behind_what_took_its_place(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    _follow(log, 0, 13, 0)
    log.roll(NOW_MS)
    _follow(log, 13, 16, 0)
    log.flush()
    path = log.segments[1].path(".log")
    old = path.read_bytes()
    log.truncate_to(10, NOW_MS)
    _follow(log, 10, 20, 1)
    expected = _values(log)
    path.write_bytes(old)
    again = open_log(tmp_path, CONFIG, recovery_point=10)
    assert (again.log_end_offset, again.leader_epochs.entries) == (20, [(0, 0), (1, 10)])
    assert _values(again) == expected
    assert not path.exists()


def test_a_clean_stop_syncs_every_index(tmp_path: Path) -> None:
    """The next start believes them."""
    disk = DurableDisk(tmp_path / "disk")
    log = open_log(tmp_path / "disk", CONFIG, disk)
    for number in range(2):
        for n in range(10):
            append(log, b"%d" % n, timestamp=NOW_MS + n)
        if number == 0:
            log.roll(NOW_MS)
    log.close()
    for segment in log.segments:
        segment.path(".index").read_bytes()
    again = after_a_power_cut(disk, tmp_path / "after", log, clean=True)
    for before, after in zip(log.segments, again.segments, strict=True):
        for suffix in (".index", ".timeindex", ".txnindex"):
            assert after.path(suffix).read_bytes() == before.path(suffix).read_bytes(), (before, suffix)


def test_a_clean_stop_remembers_producers_without_records(tmp_path: Path) -> None:
    disk = DurableDisk(tmp_path / "disk")
    log = open_log(tmp_path / "disk", disk=disk)
    append(log, b"x", producer_id=7, producer_epoch=3, base_sequence=0)
    log.roll(NOW_MS)
    log.delete_records(1)
    assert log.delete_old_segments(NOW_MS) == 1
    log = open_log(tmp_path / "disk", disk=disk)  # as after kill -9
    append(log, b"y")
    log.close()
    again = after_a_power_cut(disk, tmp_path / "after", log, clean=True)
    assert again.producers.describe() == log.producers.describe() != []


@pytest.mark.parametrize("clean", [True, False])
def test_a_snapshot_of_batches_that_are_lost_leaves_no_transaction_open(tmp_path: Path, clean: bool) -> None:
    """A segment's batches are lost and the next segment is there, with the snapshot that was taken at its start."""
    log = open_log(tmp_path)
    append(log, b"x", producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.roll(NOW_MS)
    log.segments[0].path(".log").write_bytes(b"")
    again = open_log(tmp_path)
    assert again.producers.describe() == []
    again.close()
    again = open_log(tmp_path, clean=clean, recovery_point=again.recovery_point)
    again.high_watermark = again.log_end_offset
    assert again.producers.describe() == []
    assert again.last_stable_offset == again.log_end_offset


def test_a_snapshot_older_than_the_first_segment_leaves_no_transaction_open(tmp_path: Path) -> None:
    """A transaction ended behind a snapshot, everything up to there was deleted, and the cut came before the snapshot
    went, and took the one that was taken since."""
    log = open_log(tmp_path)
    append(log, b"x", producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.roll(NOW_MS)
    older = log.snapshots.path(1).read_bytes()
    log.append(marker(commit=True, producer_id=7), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.high_watermark = log.log_end_offset
    log.delete_records(2)
    assert log.delete_old_segments(NOW_MS) == 2
    log.snapshots.path(1).write_bytes(older)
    log.snapshots.path(2).write_bytes(b"torn")
    again = open_log(tmp_path, recovery_point=1)
    assert (again.log_start_offset, again.producers.describe()) == (2, [])
    append(again, b"next")
    assert again.last_stable_offset == again.log_end_offset == 3
