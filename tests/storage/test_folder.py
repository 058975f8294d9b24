"""A crash at any step of deleting or replacing segments: at the next start it is finished or undone."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from ottla.storage.disk import Disk
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.retention import delete_segments
from ottla.storage.segments.segment import CLEANED_SUFFIX, SWAP_SUFFIX, Segment
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all
from tests.storage.disks import Crash, CrashingDisk

CONFIG = LogConfig(segment_bytes=5 * len(batch(b"00")), index_interval_bytes=100, retention_ms=0)
# Only there are segments replaced, and offsets missing by right.
COMPACTED = dataclasses.replace(CONFIG, cleanup_compact=True)


def fill(directory: Path, disk: Disk) -> Log:
    log = open_log(directory, CONFIG, disk)
    for n in range(23):
        append(log, b"%02d" % n)
    return log


def test_a_crash_at_any_step_of_a_deletion(tmp_path: Path) -> None:
    for step in range(60):
        disk = CrashingDisk(1 << 30)
        log = fill(tmp_path / "log", disk)
        disk.steps = step
        done = False
        try:
            log.delete_old_segments(NOW_MS + 10)
            done = True
        except Crash:
            pass
        again = open_log(tmp_path / "log", COMPACTED)
        found = [offset for offset, _ in read_all(again)]
        assert found == list(range(23))[len(range(23)) - len(found) :], "only from the start on"
        assert (again.log_end_offset, append(again, b"next")) == (23, 23)
        assert not list((tmp_path / "log").glob("*.deleted"))
        shutil.rmtree(tmp_path / "log")
        if done:
            assert step > 10
            return
    raise AssertionError("the deletion never ended")


def replace(log: Log, keep: set[int]) -> None:
    """Merge the first three segments into one with the records in `keep`: the steps of Kafka's cleaner."""
    old = log.segments[:3]
    new = Segment(log.dir, old[0].base_offset, suffix=CLEANED_SUFFIX, index_interval=100, disk=log.disk)
    new.create(NOW_MS)
    for offset, value in read_all(log):
        if offset < 15 and offset in keep:
            data = batch(value or b"", base_offset=0)
            data[0:8] = offset.to_bytes(8, "big")
            log.disk.write_all(new.file().fd, data, new.size)
            new.note_batch(new.size, len(data), offset, NOW_MS)
    new.finish()
    new.rename_to(SWAP_SUFFIX)
    log.segments[:3] = [new]
    delete_segments(log, old)
    new.rename_to("")


@pytest.mark.parametrize("keep", [{1, 7, 14}, {0, 14}, {3}, set(range(15)), set()])
def test_a_crash_at_any_step_of_a_replacement(tmp_path: Path, keep: set[int]) -> None:
    tail = list(range(15, 23))
    outcomes = set()
    for step in range(80):
        disk = CrashingDisk(1 << 30)
        log = fill(tmp_path / "log", disk)
        disk.steps = step
        done = False
        try:
            replace(log, keep)
            done = True
        except Crash:
            pass
        again = open_log(tmp_path / "log", COMPACTED, recovery_point=23)
        found = [offset for offset, _ in read_all(again)]
        # Either nothing happened, or the cleaned records; segments that were not replaced yet may be whole.
        assert set(found) >= keep | set(tail)
        assert found == sorted(set(found))
        outcomes.add(tuple(found))
        assert all(value == b"%02d" % offset for offset, value in read_all(again))
        assert (again.log_end_offset, append(again, b"next")) == (23, 23)
        leftovers = [
            path.name for path in (tmp_path / "log").iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")
        ]
        assert not leftovers
        shutil.rmtree(tmp_path / "log")
        if done:
            assert tuple(sorted(keep) + tail) in outcomes
            return
    raise AssertionError("the replacement never ended")


def test_files_without_a_log_are_cleared(tmp_path: Path) -> None:
    fill(tmp_path, Disk())
    (tmp_path / "00000000000000000099.index").touch()
    (tmp_path / "00000000000000000099.timeindex").touch()
    (tmp_path / "leader-epoch-checkpoint.tmp").touch()
    (tmp_path / "notes.txt").write_text("not ours")
    again = open_log(tmp_path, CONFIG)
    assert again.log_end_offset == 23
    assert {path.name for path in tmp_path.iterdir() if "99" in path.name or path.suffix == ".tmp"} == set()
    assert (tmp_path / "notes.txt").exists()
