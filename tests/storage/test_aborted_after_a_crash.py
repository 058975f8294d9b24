"""Aborted transactions stay aborted, whatever a kill or a power cut leaves of the index that names them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from ottla.storage.disk import Disk
from ottla.storage.log import Log
from ottla.storage.results import Origin
from ottla.storage.segments.segment import TXN_INDEX_SUFFIX
from ottla.testing.simulation.durable_disk import DurableDisk, SyncedOnly
from tests.storage.batches import NOW_MS, append, open_log
from tests.storage.markers import TRANSACTIONAL, marker
from tests.support.loop_broker import Crash


def abort(log: Log, producer_id: int, sequence: int) -> tuple[int, int]:
    """One aborted transaction; gives it as readers hear of it."""
    first = append(
        log, b"x", producer_id=producer_id, producer_epoch=0, base_sequence=sequence, attributes=TRANSACTIONAL
    )
    data = marker(commit=False, producer_id=producer_id)
    log.append(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.high_watermark = log.log_end_offset
    return producer_id, first


def aborted(log: Log) -> list[tuple[int, int]]:
    log.high_watermark = log.log_end_offset
    return log.aborted_transactions(log.log_start_offset, log.log_end_offset)


def after_a_power_cut(disk: DurableDisk, target: Path, log: Log, *, clean: bool = False) -> Log:
    disk.image(target, SyncedOnly())
    return open_log(target, log.config, recovery_point=log.recovery_point, clean=clean)


def test_kill_after_a_snapshot_in_the_middle_of_a_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint takes snapshots of producers, and does not write the index of aborted transactions."""
    monkeypatch.setattr("ottla.storage.log._SNAPSHOT_BYTES", 1)
    log = open_log(tmp_path)
    expected = [abort(log, 1, 0)]
    log.close()
    log = open_log(tmp_path, clean=True, recovery_point=log.log_end_offset)
    expected += [abort(log, 1, n) for n in range(1, 5)]
    log.snapshot_producers()
    expected.append(abort(log, 1, 5))
    again = open_log(tmp_path, recovery_point=log.recovery_point)
    assert aborted(again) == expected


def test_a_kill_while_the_index_is_written_again(tmp_path: Path) -> None:
    """A power cut has kept its last entry, and not the marker that this one names: it is made again from the log. Half
    of that would look like the whole."""

    class DiesAtTheIndex(Disk):
        def write_all(self, fd: int, data: Any, position: int) -> None:
            if TXN_INDEX_SUFFIX in os.readlink(f"/proc/self/fd/{fd}"):
                raise Crash("killed")
            super().write_all(fd, data, position)

    log = open_log(tmp_path)
    expected = [abort(log, n, 0) for n in range(3)]
    log.close()
    path, recovery_point = log.segments[0].path(TXN_INDEX_SUFFIX), log.log_end_offset
    path.write_bytes(
        path.read_bytes() + struct.pack(">hqqqq", 0, 9, recovery_point, recovery_point + 1, recovery_point)
    )
    log = open_log(tmp_path, recovery_point=recovery_point, disk=DiesAtTheIndex())
    with pytest.raises(Crash):
        assert aborted(log) == expected
        append(log, b"more")
        log.flush()
    assert aborted(open_log(tmp_path, recovery_point=recovery_point)) == expected


@pytest.mark.parametrize("how", ["roll", "idle", "close"])
def test_a_power_cut_after_a_sync_of_the_segment(tmp_path: Path, how: str) -> None:
    disk = DurableDisk(tmp_path / "disk")
    log = open_log(tmp_path / "disk", disk=disk)
    append(log, b"first")
    log.flush()
    expected = [abort(log, n, 0) for n in range(3)]
    if how != "close":
        log.roll(NOW_MS)
    if how == "idle":
        for _ in range(2):
            log.release_idle()
    if how == "close":
        log.close()
    else:
        append(log, b"more")
        log.flush()
    assert log.recovery_point == log.log_end_offset
    again = after_a_power_cut(disk, tmp_path / "after", log, clean=how == "close")
    assert aborted(again) == expected


def test_a_power_cut_after_the_index_was_made_again(tmp_path: Path) -> None:
    disk = DurableDisk(tmp_path / "disk")
    log = open_log(tmp_path / "disk", disk=disk)
    expected = [abort(log, n, 0) for n in range(3)]
    log.roll(NOW_MS)
    append(log, b"more")
    log.close()
    log.segments[0].path(TXN_INDEX_SUFFIX).unlink()
    disk.fsync_path(tmp_path / "disk")
    log = open_log(tmp_path / "disk", disk=disk, clean=True, recovery_point=log.log_end_offset)
    assert aborted(log) == expected
    disk.fsync_path(tmp_path / "disk")  # the name is durable sooner than the content
    again = after_a_power_cut(disk, tmp_path / "after", log)
    assert aborted(again) == expected


def test_a_full_disk_during_a_flush_does_not_make_the_index_seem_synced(tmp_path: Path) -> None:
    """The flush fails behind the index, is tried again with success, and then the power goes."""

    class FailsOnce(DurableDisk):
        armed = False

        def rename(self, source: str | Path, target: str | Path) -> None:
            if self.armed and str(target).endswith("leader-epoch-checkpoint"):
                self.armed = False
                raise OSError(28, "No space left on device")
            super().rename(source, target)

    disk = FailsOnce(tmp_path / "disk")
    log = open_log(tmp_path / "disk", disk=disk)
    expected = [abort(log, n, 0) for n in range(3)]
    disk.armed = True
    with pytest.raises(Exception, match="flush"):
        log.flush()
    append(log, b"more")
    log.flush()
    assert log.recovery_point == log.log_end_offset
    again = after_a_power_cut(disk, tmp_path / "after", log)
    assert aborted(again) == expected


def test_a_snapshot_that_comes_back_with_the_power_is_not_believed(tmp_path: Path) -> None:
    """Recovery removes snapshots above the new end; a second cut may bring back their names, when other batches stand
    where they were taken."""
    disk = DurableDisk(tmp_path / "disk")
    log = open_log(tmp_path / "disk", disk=disk)
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.flush()
    append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1)
    append(log, b"c", producer_id=1, producer_epoch=0, base_sequence=2)
    log.snapshots.write(3, log.producers.snapshot_entries())
    disk.fsync_path(log.snapshots.path(3))
    disk.fsync_path(tmp_path / "disk")
    log.segments[-1].truncate_to(1)  # what a power cut may do
    log = open_log(tmp_path / "disk", disk=disk, recovery_point=1)
    assert log.log_end_offset == 1
    for _ in range(4):
        append(log, b"plain")
    log.flush()
    again = after_a_power_cut(disk, tmp_path / "after", log)
    assert again.log_end_offset == 5
    assert append(again, b"b", producer_id=1, producer_epoch=0, base_sequence=1) == 5
