"""A copy of a log on its way to another directory: how fast it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.future_log import CopyGivenUp, FutureLog
from tests.storage.batches import NOW_MS, append, open_log, read_all


class Clock:
    """Time passes while somebody sleeps, and while the disk works."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.naps: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now_s += seconds


@pytest.mark.parametrize("rate", [1_000, 20_000, 7_000_000])
def test_it_copies_no_more_per_second_than_it_may(tmp_path: Path, rate: int) -> None:
    log = open_log(tmp_path / "log", LogConfig(segment_bytes=20_000))
    for _ in range(30):
        append(log, b"x" * 2_000)
    clock = Clock()
    copy = FutureLog(log, tmp_path / "future", lambda: rate, monotonic=clock.monotonic, sleep=clock.sleep)
    sealed = copy.missing(NOW_MS)
    copy.copy(sealed)
    copied = sum(path.stat().st_size for path in (tmp_path / "future").iterdir())
    assert copied >= sum(segment.size for segment in sealed) > 0
    assert clock.now_s == pytest.approx(copied / rate, rel=0.01)
    assert max(clock.naps) <= 0.11, "who wants it to end is not kept waiting"
    for segment in sealed:
        name = segment.path(".log").name
        assert (tmp_path / "future" / name).read_bytes() == segment.path(".log").read_bytes()


def test_it_does_not_rest_without_a_limit_nor_while_the_log_stands_still(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", LogConfig(segment_bytes=20_000))
    for _ in range(30):
        append(log, b"x" * 2_000)
    clock, rates = Clock(), [float("inf")]
    copy = FutureLog(log, tmp_path / "future", lambda: rates[0], monotonic=clock.monotonic, sleep=clock.sleep)
    copy.copy(copy.missing(NOW_MS))
    rates[0] = 1
    log.close()
    copy.finish()
    assert clock.naps == []


def test_a_throttled_copy_can_be_given_up(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", LogConfig(segment_bytes=20_000))
    for _ in range(30):
        append(log, b"x" * 2_000)
    naps: list[float] = []
    copy = FutureLog(log, tmp_path / "future", lambda: 10, sleep=lambda seconds: naps.append(seconds) or copy.give_up())
    with pytest.raises(CopyGivenUp):
        copy.copy(copy.missing(NOW_MS))
    assert len(naps) == 1


@pytest.mark.parametrize("when", ["in the last moment", "between two rounds"])
def test_a_follower_that_is_cut_back_meanwhile_is_copied_as_it_is_then(tmp_path: Path, when: str) -> None:
    """What a new leader disowns must not come back with the copy, nor stand where other records are now."""
    log = open_log(tmp_path / "log", LogConfig(segment_bytes=1_000))
    for number in range(30):
        append(log, b"old %02d" % number)
    copy = FutureLog(log, tmp_path / "future")
    copy.copy(copy.missing(NOW_MS))
    second = log.segments[1].base_offset
    log.truncate_to(second + 2, NOW_MS)
    for number in range(second + 2, second + (4 if when == "in the last moment" else 28)):
        append(log, b"new %02d" % number)
    if when == "between two rounds":
        copy.copy(copy.missing(NOW_MS))
    expected = read_all(log)
    log.bring_to_disk()
    copy.finish()
    copied = open_log(
        tmp_path / "future", LogConfig(segment_bytes=1_000), clean=True, recovery_point=log.log_end_offset
    )
    assert copied.log_end_offset == log.log_end_offset
    assert read_all(copied) == expected
