"""A crash at every step of swapping cleaned segments in: what the next start finds is the log as it was, or cleaned."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.storage.disk import Disk
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW_MS, open_log, read_all
from tests.storage.cleaning import COMPACT, DAY_MS, clean, clean_all, leftovers, pairs, put, table
from tests.storage.disks import Crash

CONFIG = LogConfig(cleanup_compact=True, cleanup_delete=False, segment_bytes=1200, index_interval_bytes=200)


class StepDisk(Disk):
    """Counts the calls that change anything, and crashes instead of the n-th."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.steps = 0
        self.crash_at = crash_at

    def _step(self) -> None:
        if self.steps == self.crash_at:
            raise Crash
        self.steps += 1

    def rename(self, source: str | Path, target: str | Path) -> None:
        self._step()
        super().rename(source, target)

    def unlink(self, path: str | Path) -> None:
        self._step()
        super().unlink(path)

    def fsync(self, fd: int) -> None:
        self._step()

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        self._step()
        return super().pwrite(fd, data, position)

    def copy_range(self, source: int, start: int, target: int, position: int, size: int) -> int:
        self._step()
        return super().copy_range(source, start, target, position, size)

    def open(self, path: str | Path, flags: int) -> Any:
        self._step()
        return super().open(path, flags)


# A round begins when the checkpoint says that all is on disk.
SYNCED = 60


def fill(log: Log) -> None:
    for n in range(30):
        put(log, (b"key-%d" % (n % 5), b"%d" % n), (b"once-%d" % n, b"x" * 20 if n % 3 else None))
    log.roll(NOW_MS)
    assert log.log_end_offset == SYNCED


def rounds(log: Log) -> None:
    """Two rounds: the second finds tombstones past their horizon, and joins what the first left."""
    log.high_watermark = log.log_end_offset
    clean(log, NOW_MS, roll=False)
    log.cleaned_offset = 0
    clean(log, NOW_MS + DAY_MS, roll=False)


def _folders(tmp_path: Path) -> Iterator[tuple[int, Path, Disk]]:
    prepared = tmp_path / "prepared"
    log = open_log(prepared, CONFIG)
    fill(log)
    log.close()
    counting = StepDisk()
    shutil.copytree(prepared, tmp_path / "count")
    log = open_log(tmp_path / "count", CONFIG, counting, clean=True)
    start = counting.steps
    rounds(log)
    assert counting.steps - start > 60
    for step in range(start, counting.steps):
        folder = tmp_path / f"crash-{step}"
        shutil.copytree(prepared, folder)
        yield step, folder, StepDisk(step)


def test_every_step(tmp_path: Path) -> None:
    reference = open_log(tmp_path / "reference", CONFIG, StepDisk())
    fill(reference)
    expected, original = table(reference), pairs(reference)
    rounds(reference)
    end_state = pairs(reference)
    cleaned = 0
    for step, folder, disk in _folders(tmp_path):
        log = open_log(folder, CONFIG, disk, clean=True)
        with pytest.raises(Crash):
            rounds(log)
        again = open_log(folder, CONFIG, StepDisk(), recovery_point=SYNCED)
        assert leftovers(folder, (".cleaned", ".swap", ".deleted")) == [], step
        found = pairs(again)
        assert table(again) == expected, step
        assert [one for one in found if one not in original] == [], step
        assert [one for one in end_state if one not in found] == [], step
        assert again.log_end_offset == reference.log_end_offset, step
        assert read_all(again) == [(offset, value) for offset, _, value in found], step
        cleaned += found != original
        # And the work can be done again.
        rounds(again)
        assert pairs(again) == end_state, step
        shutil.rmtree(folder)
    assert cleaned > 10


def test_a_crash_while_a_start_completes_a_swap(tmp_path: Path) -> None:
    """The start itself may crash, again and again, and still nothing is lost."""
    prepared = tmp_path / "prepared"
    log = open_log(prepared, CONFIG)
    fill(log)
    expected = table(log)
    log.close()
    counting = StepDisk()
    shutil.copytree(prepared, tmp_path / "count")
    log = open_log(tmp_path / "count", CONFIG, counting, clean=True)
    start = counting.steps
    rounds(log)
    renames = 0
    for crash_at in range(start, counting.steps, 2):
        folder = tmp_path / "folder"
        shutil.copytree(prepared, folder)
        with pytest.raises(Crash):
            rounds(open_log(folder, CONFIG, StepDisk(crash_at), clean=True))
        if not leftovers(folder, (".swap",)):
            shutil.rmtree(folder)
            continue
        for step in range(100):
            try:
                again = open_log(folder, CONFIG, StepDisk(step), recovery_point=SYNCED)
                break
            except Crash:
                renames += 1
        assert table(again) == expected
        shutil.rmtree(folder)
    assert renames > 10


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    class FullDisk(Disk):
        full = False

        def pwrite(self, fd: int, data: Any, position: int) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().pwrite(fd, data, position)

        def copy_range(self, *arguments: int) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().copy_range(*arguments)

    disk = FullDisk()
    log = open_log(tmp_path, COMPACT, disk)
    for n in range(50):
        put(log, (b"a", b"%d" % n), (b"b%d" % n, b"1"))
    log.roll(NOW_MS)
    before = pairs(log)
    disk.full = True
    with pytest.raises(OSError, match="No space"):
        clean(log, roll=False)
    assert pairs(log) == before
    assert leftovers(tmp_path) == []
    disk.full = False
    clean_all(log)
    assert len(pairs(log)) == 51


def test_a_disk_that_fails_while_renaming_takes_the_log_offline(tmp_path: Path) -> None:
    class BadDisk(Disk):
        bad = False

        def rename(self, source: str | Path, target: str | Path) -> None:
            if self.bad and str(target).endswith(".deleted"):
                raise OSError(5, "Input/output error")
            super().rename(source, target)

    disk = BadDisk()
    log = open_log(tmp_path, COMPACT, disk)
    for n in range(50):
        put(log, (b"a", b"%d" % n))
    disk.bad = True
    with pytest.raises(OSError, match="Input/output"):
        clean(log)
    assert log.failed is not None
    assert table(open_log(tmp_path, COMPACT, recovery_point=50)) == {b"a": b"49"}
