"""Disk full: an error, no half batch, and it goes on when there is room. A failing disk: its directory is offline."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.storage.disk import Disk, OpenFile
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_manager import LogManager
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all
from tests.storage.disks import BrokenDisk, FullDisk
from tests.storage.markers import TRANSACTIONAL, marker
from tests.support.manual_clock import ManualClock

ONE = len(batch(b"x" * 100))


def refuse(log: Log, *values: bytes, **producer: int) -> None:
    with pytest.raises(ApiError) as caught:
        append(log, *values, **producer)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("room", [0, 1, 15, 16, 17, 60, 61, ONE - 1])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_full_disk_takes_no_half_batch(tmp_path: Path, room: int, kind: type) -> None:
    disk = FullDisk()
    log = open_log(tmp_path, disk=disk)
    append(log, b"x" * 100)
    disk.room = room
    with pytest.raises(ApiError, match="the disk is full"):
        log.append(kind(bytes(batch(b"y" * 100))), leader_epoch=0, now_ms=NOW_MS)
    assert (log.log_end_offset, log.segments[-1].path(".log").stat().st_size) == (1, ONE)
    disk.room = 1 << 30
    assert append(log, b"z") == 1
    assert read_all(open_log(tmp_path)) == [(0, b"x" * 100), (1, b"z")]


def test_a_short_write_with_room_is_finished(tmp_path: Path) -> None:
    class Short(Disk):
        def pwrite(self, fd: int, data: memoryview, position: int) -> int:
            return os.pwrite(fd, bytes(data)[:7], position)

    log = open_log(tmp_path, disk=Short())
    append(log, b"whole", b"batch")
    assert read_all(open_log(tmp_path)) == [(0, b"whole"), (1, b"batch")]


@pytest.mark.parametrize("room", [0, 100, 250])
def test_a_full_disk_while_rolling(tmp_path: Path, room: int) -> None:
    disk = FullDisk()
    config = LogConfig(segment_bytes=3 * ONE, index_interval_bytes=100)
    log = open_log(tmp_path, config, disk)
    for _ in range(3):
        append(log, b"x" * 100)
    disk.room = room
    for _ in range(5):
        try:
            append(log, b"y" * 100)
        except ApiError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.room = 1 << 30
    end = log.log_end_offset
    for _ in range(4):
        append(log, b"z" * 100)
    log.close()
    for clean in (True, False):
        again = open_log(tmp_path, config, clean=clean)
        assert [offset for offset, _ in read_all(again)] == list(range(end + 4))


def test_producer_state_does_not_move_with_a_failed_write(tmp_path: Path) -> None:
    disk = FullDisk()
    log = open_log(tmp_path, disk=disk)
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    disk.room = 10
    refuse(log, b"x" * 100)
    with pytest.raises(ApiError):
        append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1)
    disk.room = 1 << 30
    assert append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1) == 1


@pytest.mark.parametrize("first", [0, 3])
def test_batches_behind_a_refused_one_get_the_same_error_until_it_is_there(tmp_path: Path, first: int) -> None:
    """With OUT_OF_ORDER_SEQUENCE_NUMBER librdkafka takes a new epoch, and other partitions get batches again."""
    disk = FullDisk()
    log = open_log(tmp_path, disk=disk)
    for sequence in range(first):
        append(log, b"before", producer_id=1, producer_epoch=0, base_sequence=sequence)
    disk.room = 10
    refuse(log, b"refused", producer_id=1, producer_epoch=0, base_sequence=first)
    disk.room = 1 << 30
    append(log, b"of somebody else", producer_id=2, producer_epoch=0, base_sequence=0)
    for sequence in (first + 1, first + 2):
        refuse(log, b"behind it", producer_id=1, producer_epoch=0, base_sequence=sequence)
    for sequence in range(first, first + 3):
        append(log, b"again", producer_id=1, producer_epoch=0, base_sequence=sequence)
    with pytest.raises(ApiError) as caught:
        append(log, b"after a gap of the producer's own", producer_id=1, producer_epoch=0, base_sequence=first + 4)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_does_not_wait_for_what_the_disk_refused_of_the_old(tmp_path: Path) -> None:
    disk = FullDisk()
    log = open_log(tmp_path, disk=disk)
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    disk.room = 10
    refuse(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1)
    disk.room = 1 << 30
    assert append(log, b"b", producer_id=1, producer_epoch=1, base_sequence=0) == 1


def test_of_very_many_producers_that_were_refused_the_oldest_is_forgotten(tmp_path: Path) -> None:
    disk = FullDisk()
    log = open_log(tmp_path, disk=disk)
    for producer_id in range(1_001):
        append(log, b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    disk.room = 10
    for producer_id in range(1_001):
        refuse(log, b"b", producer_id=producer_id, producer_epoch=0, base_sequence=1)
    disk.room = 1 << 30
    refuse(log, b"c", producer_id=1, producer_epoch=0, base_sequence=2)
    with pytest.raises(ApiError) as caught:
        append(log, b"c", producer_id=0, producer_epoch=0, base_sequence=2)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_aborted_transactions_are_known_after_a_stop_on_a_full_disk(tmp_path: Path) -> None:
    disk = FullDisk()
    log = open_log(tmp_path, disk=disk)
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.append(marker(commit=False, producer_id=1), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.flush()
    append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1, attributes=TRANSACTIONAL)
    log.append(marker(commit=False, producer_id=1), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    expected = log.aborted_transactions(0, 4)
    disk.room = 0
    log.close()
    again = open_log(tmp_path, clean=True)
    assert again.aborted_transactions(0, 4) == expected
    assert len(expected) == 2


@pytest.mark.parametrize("room", [0, 1, 8, 20])
def test_a_crash_is_recovered_from_without_room_for_indexes(tmp_path: Path, room: int) -> None:
    """Found by the simulation (seed 416): the directory was offline until the next start."""
    config = LogConfig(segment_bytes=600, index_interval_bytes=1)
    log = open_log(tmp_path, config)
    for number in range(12):
        append(
            log, b"%d" % number * 60, producer_id=1, producer_epoch=0, base_sequence=number, attributes=TRANSACTIONAL
        )
        log.append(marker(commit=False, producer_id=1), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    expected, aborted = read_all(log), log.aborted_transactions(0, 24)
    for index in (*tmp_path.glob("*.index"), *tmp_path.glob("*.timeindex"), *tmp_path.glob("*.txnindex")):
        index.unlink()
    disk = FullDisk(room)
    log = open_log(tmp_path, config, disk)
    assert (read_all(log), log.aborted_transactions(0, 24)) == (expected, aborted)
    disk.room = 1 << 30
    log.flush()
    log.close()
    again = open_log(tmp_path, config, clean=True)
    assert (read_all(again), again.aborted_transactions(0, 24)) == (expected, aborted)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_real_full_disk(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        log = open_log(mount / "orders-0")
        count = 0
        with pytest.raises(ApiError, match="the disk is full"):
            while True:
                append(log, b"%05d" % count + os.urandom(3000))
                count += 1
        assert log.log_end_offset == count > 50
        (mount / "orders-0" / "00000000000000000000.timeindex").unlink(missing_ok=True)
        del log
        again = open_log(mount / "orders-0")
        assert again.log_end_offset == count
        del again
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[tuple[LogManager, BrokenDisk, list[Log]]]:
    disk = BrokenDisk()
    logs = LogManager(
        [tmp_path / "a", tmp_path / "b"],
        node_id=1,
        cluster_id="c",
        clock=ManualClock(),
        default_config=LogConfig(),
        disk=disk,
    )
    logs.open()
    made = [logs.create(TopicPartition("t", n), random_topic_id(), LogConfig()) for n in range(4)]
    for log in made:
        append(log, b"x")
    yield logs, disk, made
    disk.broken.clear()
    logs.close()


@pytest.mark.parametrize("call", ["fsync", "write", "truncate"])
def test_a_failing_disk_takes_its_directory_offline(
    broken: tuple[LogManager, BrokenDisk, list[Log]], call: str, caplog: pytest.LogCaptureFixture
) -> None:
    logs, disk, made = broken
    disk.broken.add(call)
    if call == "fsync":
        with pytest.raises(ApiError) as caught:
            made[0].flush()
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    elif call == "truncate":
        with pytest.raises(ApiError) as caught:
            made[0].truncate_to(0, NOW_MS)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    else:
        refuse(made[0], b"y")
    disk.broken.clear()
    failed = made[0].dir.parent
    for log in made:
        if log.dir.parent == failed:
            refuse(log, b"z")
            with pytest.raises(ApiError) as caught:
                log.read(0, 100, upper_offset=1, min_one=True)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        else:
            assert append(log, b"z") == 1
    assert [one.path for one in logs.dirs if one.offline] == [failed]
    assert len([line for line in caplog.messages if f"{failed} is offline" in line]) == 1
    new = logs.create(TopicPartition("new", 0), random_topic_id(), LogConfig())
    assert new.dir.parent != failed
    logs.close()
    assert not (failed / ".kafka_cleanshutdown").exists()
    other = next(one.path for one in logs.dirs if one.path != failed)
    assert (other / ".kafka_cleanshutdown").exists()


def test_a_log_that_cannot_begin_anew_now_does_so_later(tmp_path: Path) -> None:
    class Few(Disk):
        are_out = False

        def open(self, path: str | Path, flags: int, *rest: int) -> OpenFile:
            if self.are_out:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().open(path, flags, *rest)

    disk = Few()
    log = open_log(tmp_path, disk=disk)
    append(log, b"old")
    disk.are_out = True
    with pytest.raises(ApiError):
        log.restart_at(5, NOW_MS)
    disk.are_out = False
    log.flush()
    assert log.log_end_offset == 1, "it is asked for many things meanwhile"
    log.truncate_to(9, NOW_MS)
    log.restart_at(5, NOW_MS)
    assert append(log, b"new") == 5
    log.flush()
    again = open_log(tmp_path, log_start_offset=5, recovery_point=6)
    assert (again.hole, read_all(again)) == (None, [(5, b"new")])


def test_a_stop_on_a_full_disk_is_one_line_for_all_partitions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = FullDisk()
    logs = LogManager(
        [tmp_path / "d"], node_id=1, cluster_id="c", clock=ManualClock(), default_config=LogConfig(), disk=disk
    )
    logs.open()
    for number in range(5):
        append(logs.create(TopicPartition("t", number), random_topic_id(), LogConfig()), b"x")
    disk.room = 0
    caplog.clear()
    logs.close()
    assert [line.split(":")[0] for line in caplog.messages] == [
        str(tmp_path / "d"),
        f"{tmp_path / 'd'} was not closed cleanly",
    ]


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE])
def test_a_snapshot_that_cannot_be_written_holds_back_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    class NoSnapshots(Disk):
        def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
            if path.suffix == ".snapshot" and path.parent.name == "bad-0":
                raise OSError(error, os.strerror(error))
            super().replace_file(path, content, sync=sync)

    monkeypatch.setattr("ottla.storage.log._SNAPSHOT_BYTES", 1)
    dirs = [tmp_path / "a", tmp_path / "b"]
    for one in dirs:
        one.mkdir()
    logs = LogManager(
        dirs, node_id=1, cluster_id="c", clock=ManualClock(), default_config=LogConfig(), disk=NoSnapshots()
    )
    logs.open()
    for name in ("bad", "good"):
        log = logs.create(TopicPartition(name, 0), random_topic_id(), LogConfig())
        append(log, b"x")
        log.flush()
    for written in logs.checkpoint():
        written.result()
    assert (dirs[1] / "recovery-point-offset-checkpoint").read_text().splitlines()[2:] == ["good 0 1"]
    assert logs.dirs[1].offline is None
    # A disk that fails is given up; one that only lacks something is not.
    assert (logs.dirs[0].offline is None) == (error == errno.EMFILE)
    logs.close(clean=False)


def test_a_failed_sync_is_never_tried_again(broken: tuple[LogManager, BrokenDisk, list[Log]]) -> None:
    logs, disk, made = broken
    disk.broken.add("fsync")
    waiter = made[0].flush_async()
    logs.flusher.close()
    assert isinstance(waiter.exception(), ApiError)
    assert made[0].recovery_point == 0
    before = disk.syncs
    disk.broken.clear()
    with pytest.raises(ApiError):
        made[0].flush_async()
    with pytest.raises(ApiError):
        made[0].flush()
    assert disk.syncs == before


def test_a_directory_that_cannot_be_made_is_offline_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    logs = LogManager(
        [tmp_path / "file" / "x", tmp_path / "good"],
        node_id=1,
        cluster_id="c",
        clock=ManualClock(),
        default_config=LogConfig(),
    )
    logs.open()
    assert [bool(one.offline) for one in logs.dirs] == [True, False]
    assert logs.create(TopicPartition("t", 0), random_topic_id(), LogConfig()).dir.parent == tmp_path / "good"
    logs.close()


def test_running_out_of_descriptors_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMore(Disk):
        none_left = False

        def open(self, path: str | Path, flags: int) -> OpenFile:
            if self.none_left:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().open(path, flags)

    disk = NoMore()
    log = open_log(tmp_path, LogConfig(segment_bytes=2 * ONE), disk)
    for _ in range(4):
        append(log, b"x" * 100)
    log.segments[0].release()
    disk.none_left = True
    refuse(log, b"y" * 100)
    with pytest.raises(ApiError) as caught:
        log.read(0, 100, upper_offset=4, min_one=True)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.none_left = False
    assert append(log, b"y" * 100) == 4
    assert len(read_all(log)) == 5
