"""After a crash: the log is cut at the first batch that is not whole, and nothing goes that was synced."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from ottla.records.batch import read_header, stamp
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.testing.simulation.durable_disk import DurableDisk
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=150)
COMPACTED = LogConfig(segment_bytes=1000, index_interval_bytes=150, cleanup_compact=True)


def fill(directory: Path, count: int = 30, config: LogConfig = SMALL) -> Log:
    log = open_log(directory, config)
    for n in range(count):
        append(log, b"%04d" % n, timestamp=NOW_MS + n)
    return log


def boundaries(path: Path) -> list[int]:
    """Positions where a batch ends."""
    data = path.read_bytes()
    ends, at = [0], 0
    while at < len(data):
        at += read_header(data, at).size
        ends.append(at)
    return ends


def test_a_tail_torn_at_any_byte_is_cut_off(tmp_path: Path) -> None:
    log = fill(tmp_path / "original")
    last = log.segments[-1]
    ends = boundaries(last.path(".log"))
    assert len(ends) > 4
    expected = read_all(log)
    for size in range(last.size + 1):
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "original", copy)
        os.truncate(copy / last.path(".log").name, size)
        whole = sum(1 for end in ends[1:] if end <= size)
        again = open_log(copy, SMALL)
        assert again.log_end_offset == last.base_offset + whole
        assert read_all(again) == expected[: last.base_offset + whole]
        assert append(again, b"next") == last.base_offset + whole
        assert (copy / last.path(".log").name).stat().st_size == again.segments[-1].size
        assert not again.damage
        shutil.rmtree(copy)


@pytest.mark.parametrize(
    "rubbish",
    [b"\0" * 500, b"\xff" * 77, random.Random(1).randbytes(300), bytes(batch(b"half" * 30))[:-1]],
    ids=["zeros", "ones", "noise", "half a batch"],
)
def test_rubbish_behind_the_last_batch_is_cut_off(tmp_path: Path, rubbish: bytes) -> None:
    log = fill(tmp_path)
    expected = read_all(log)
    with log.segments[-1].path(".log").open("ab") as file:
        file.write(rubbish)
    again = open_log(tmp_path, SMALL)
    assert read_all(again) == expected
    assert append(again, b"next") == 30


def test_every_flipped_byte_of_the_last_batch_costs_only_that_batch(tmp_path: Path) -> None:
    log = fill(tmp_path / "original", 8)
    path = log.segments[-1].path(".log")
    ends = boundaries(path)
    for at in range(ends[-2], ends[-1]):
        if at - ends[-2] in range(8) or at - ends[-2] in range(12, 16):
            continue  # base offset and leader epoch are outside the CRC, in Kafka too
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "original", copy)
        data = bytearray(path.read_bytes())
        data[at] ^= 0x41
        (copy / path.name).write_bytes(data)
        again = open_log(copy, SMALL)
        assert again.log_end_offset == 7
        assert read_all(again) == [(n, b"%04d" % n) for n in range(7)]
        shutil.rmtree(copy)


@pytest.mark.parametrize("recovery_point", [0, 3, 10])
@pytest.mark.parametrize("at", [8, 11, 16, 18, 30, 65])
def test_a_flipped_byte_in_the_middle_cuts_the_log_there(tmp_path: Path, at: int, recovery_point: int) -> None:
    """No reader gets past a batch that is not one: librdkafka gives up, kafka-python asks for ever."""
    config = LogConfig(index_interval_bytes=150)
    log = fill(tmp_path, 30, config)
    path = log.segments[-1].path(".log")
    end = boundaries(path)[10]
    data = bytearray(path.read_bytes())
    data[end + at] ^= 0x41
    path.write_bytes(data)
    again = open_log(tmp_path, config, recovery_point=recovery_point)
    assert (again.log_end_offset, again.damage) == (10, ())
    assert path.stat().st_size == end
    assert read_all(again) == [(n, b"%04d" % n) for n in range(10)]
    assert append(again, b"next") == 10


def test_a_flipped_byte_below_the_recovery_point_truncates_nothing(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=150)
    log = fill(tmp_path / "original", 30, config)
    path = log.segments[-1].path(".log")
    ends = boundaries(path)
    for at in (ends[10] + 8, ends[10] + 11, ends[10] + 16):
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "original", copy)
        data = bytearray(path.read_bytes())
        data[at] ^= 0x41
        (copy / path.name).write_bytes(data)
        again = open_log(copy, config, recovery_point=20)
        assert again.log_end_offset == 30
        assert (copy / path.name).stat().st_size == len(data)
        assert read_all(again, start=11) == [(n, b"%04d" % n) for n in range(11, 30)]
        assert append(again, b"next") == 30
        shutil.rmtree(copy)


def test_synced_records_are_not_given_up_for_a_broken_tail(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=150)
    log = fill(tmp_path, 30, config)
    log.flush()
    assert log.recovery_point == 30
    path = log.segments[-1].path(".log")
    data = bytearray(path.read_bytes())
    data[boundaries(path)[29] + 9] ^= 0x7F  # the length of the last batch
    path.write_bytes(data)
    shutil.copytree(tmp_path, tmp_path / "unclean")
    assert open_log(tmp_path / "unclean", config, recovery_point=30).damage
    again = open_log(tmp_path, config, recovery_point=30, clean=True)
    assert (again.log_end_offset, len(again.damage) > 0) == (30, True)
    assert path.read_bytes() == data
    assert append(again, b"next") == 30
    assert read_all(again)[-2:] == [(28, b"0028"), (30, b"next")]


def test_nothing_below_the_recovery_point_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = LogConfig(index_interval_bytes=150)
    monkeypatch.setattr("ottla.storage.log._SNAPSHOT_BYTES", 1000)
    log = fill(tmp_path, 190, config)
    log.snapshot_producers()
    for n in range(10):
        append(log, b"%d" % n)
    log.segments[-1].finish()
    log.flush()
    read: list[tuple[int, int]] = []
    pread = os.pread

    def counting(fd: int, size: int, position: int) -> bytes:
        read.append((position, size))
        return pread(fd, size, position)

    monkeypatch.setattr(os, "pread", counting)
    open_log(tmp_path, config, recovery_point=190)
    position = boundaries(log.segments[-1].path(".log"))[190]
    assert sum(size for _, size in read) < position // 2


def test_a_clean_start_reads_a_few_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = LogConfig(index_interval_bytes=4096)
    log = open_log(tmp_path, config)
    for n in range(3000):
        append(log, b"%0100d" % n)
    size = log.size_bytes
    log.close()
    read: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: read.append(n) or pread(fd, n, at))
    again = open_log(tmp_path, config, clean=True, recovery_point=3000)
    assert again.log_end_offset == 3000
    assert sum(read) < 30_000 < size


def test_an_empty_segment_of_a_failed_roll_is_dropped(tmp_path: Path) -> None:
    fill(tmp_path, 5, LogConfig())
    (tmp_path / "00000000000000000003.log").touch()
    again = open_log(tmp_path)
    assert len(again.segments) == 1
    assert append(again, b"next") == 5


@pytest.mark.parametrize("lost", [b"", b"\0" * 10, b"\0" * 500])
def test_segments_behind_a_batch_that_is_not_whole_go(tmp_path: Path, lost: bytes) -> None:
    log = fill(tmp_path / "disk")
    second, third = log.segments[1:3]
    path = second.path(".log")
    path.write_bytes(path.read_bytes()[:-10] + lost)
    disk = DurableDisk(tmp_path / "disk")
    again = open_log(tmp_path / "disk", SMALL, disk)
    end = third.base_offset - 1
    assert (again.log_end_offset, len(again.segments)) == (end, 2)
    assert read_all(again) == [(n, b"%04d" % n) for n in range(end)]
    names = {one.name for one in (tmp_path / "disk").iterdir()}
    assert not any(one.path(kind).name in names for one in log.segments[2:] for kind in (".log", ".index"))
    assert disk.syncs, "the names of dropped segments must not come back beside new ones"
    assert append(again, b"next") == end


def test_segments_behind_one_that_is_missing_go(tmp_path: Path) -> None:
    """Or a replica would go on behind the hole, and never fetch what it lacks."""
    log = fill(tmp_path)
    second, third = log.segments[1:3]
    for path in second.paths():
        path.unlink(missing_ok=True)
    again = open_log(tmp_path, SMALL, recovery_point=3)
    assert (again.log_end_offset, len(again.segments)) == (second.base_offset, 1)
    assert not third.path(".log").exists()
    assert append(again, b"next") == second.base_offset


def test_a_missing_segment_that_was_synced_costs_nothing_that_follows(tmp_path: Path) -> None:
    log = fill(tmp_path)
    second, third = log.segments[1:3]
    for path in second.paths():
        path.unlink(missing_ok=True)
    again = open_log(tmp_path, SMALL, recovery_point=third.base_offset)
    assert again.log_end_offset == 30
    assert read_all(again, start=third.base_offset)[-1] == (29, b"0029")


def test_a_hole_among_records_that_were_deleted_costs_nothing_that_follows(tmp_path: Path) -> None:
    log = fill(tmp_path)
    second, third = log.segments[1:3]
    for path in second.paths():
        path.unlink(missing_ok=True)
    again = open_log(tmp_path, SMALL, recovery_point=3, log_start_offset=third.base_offset + 1)
    assert (again.log_start_offset, again.log_end_offset) == (third.base_offset + 1, 30)


def test_a_compacted_log_may_have_gaps_below_the_recovery_point(tmp_path: Path) -> None:
    log = fill(tmp_path, config=COMPACTED)
    second, third = log.segments[1:3]
    for path in second.paths():
        path.unlink(missing_ok=True)
    assert open_log(tmp_path, COMPACTED, recovery_point=third.base_offset).log_end_offset == 30


def test_a_compacted_log_may_have_gaps_where_it_was_cleaned(tmp_path: Path) -> None:
    """Also if its recovery point is older, as in a folder that Kafka wrote."""
    log = fill(tmp_path, config=COMPACTED)
    second, third = log.segments[1:3]
    for path in second.paths():
        path.unlink(missing_ok=True)
    again = open_log(tmp_path, COMPACTED, recovery_point=3, cleaned_offset=third.base_offset)
    assert (again.log_end_offset, again.cleaned_offset) == (30, third.base_offset)


def test_a_compacted_log_of_which_no_recovery_point_is_known_keeps_what_is_there(tmp_path: Path) -> None:
    log = fill(tmp_path, config=COMPACTED)
    second = log.segments[1]
    for path in second.paths():
        path.unlink(missing_ok=True)
    again = open_log(tmp_path, COMPACTED, recovery_point=None)
    # It is on disk now: the next start knows where the gaps end.
    assert (again.log_end_offset, again.recovery_point) == (30, 30)


@pytest.mark.parametrize("config", [SMALL, COMPACTED], ids=["delete", "compact"])
@pytest.mark.parametrize("batches_left", [0, 1, 3])
def test_segments_behind_missing_batches_go(tmp_path: Path, batches_left: int, config: LogConfig) -> None:
    """Of the second segment the disk has only its beginning, with no broken batch to see, and all that came later."""
    log = fill(tmp_path / "disk", config=config)
    second = log.segments[1]
    path = second.path(".log")
    os.truncate(path, boundaries(path)[batches_left])
    again = open_log(tmp_path / "disk", config)
    end = second.base_offset + batches_left
    assert (again.log_end_offset, len(again.segments)) == (end, 2)
    assert read_all(again) == [(n, b"%04d" % n) for n in range(end)]
    assert append(again, b"next") == end


def test_missing_batches_below_the_recovery_point_cost_nothing_else(tmp_path: Path) -> None:
    log = fill(tmp_path)
    second, third = log.segments[1:3]
    os.truncate(second.path(".log"), 0)
    again = open_log(tmp_path, SMALL, recovery_point=third.base_offset + 1)
    assert again.log_end_offset == 30
    assert again.segments[2].base_offset == third.base_offset


@pytest.mark.parametrize("gap", [500, 2**31 + 500])
def test_gaps_of_a_compacted_leader_are_no_hole_in_its_follower(tmp_path: Path, gap: int) -> None:
    """A kill takes nothing from the files, however little of them is synced."""
    log = open_log(tmp_path, COMPACTED)
    for n in range(30):
        data = batch(b"%04d" % n, timestamp=NOW_MS + n)
        stamp(data, 0, n * gap, 0)
        log.append_fetched(memoryview(data), NOW_MS)
    assert len(log.segments) >= 3
    again = open_log(tmp_path, COMPACTED)
    assert again.log_end_offset == 29 * gap + 1
    assert read_all(again) == [(n * gap, b"%04d" % n) for n in range(30)]
