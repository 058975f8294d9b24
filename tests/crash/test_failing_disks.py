"""A disk that is full, and one that fails to sync, under a whole broker: an error, never an ack of what is lost.

`reliability.md` 15: disk full is an error, no ack, no half batch, and goes away when there is room again. 16: a failed
fsync takes the directory offline for good; trying again and going on would acknowledge what the kernel has dropped.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.common.errors import ErrorCode
from ottla.testing.checker import Checker, Stamp, stamped
from tests.crash.load import TOPIC, read_log, wait_until
from tests.crash.test_kills import create_topic, verdict
from tests.support.brokers import OttlaProcess
from tests.support.process import BrokerDidNotStart
from tests.support.raw_client import ConnectionClosed, RawClient, batch_of
from tests.support.small_disk import small_tmpfs

pytestmark = pytest.mark.xdist_group("crash")


class Numbered:
    """Sends numbered records and keeps the ledger."""

    def __init__(self, client: RawClient, checker: Checker, name: str = "p") -> None:
        self.client = client
        self.checker = checker
        self.name = name
        self._number = 0

    def send(self, size: int) -> ErrorCode:
        stamp = Stamp(self.name, 0, self._number)
        self._number += 1
        self.checker.sent(stamp)
        line = self.client.produce(TOPIC, batch_of(stamped(*stamp, size)))
        if line.error_code:
            self.checker.given_up(stamp)
        else:
            self.checker.acknowledged(stamp, line.base_offset)
        return ErrorCode(line.error_code)


def test_a_full_disk_is_an_error_and_passes_when_there_is_room(tmp_path: Path) -> None:
    checker = Checker()
    with small_tmpfs(tmp_path / "small", "256k") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(60_000))
        broker = OttlaProcess(tmp_path / "broker", {"offsets.topic.num.partitions": "1"})
        broker.data_dir = disk / "data"
        with broker:
            create_topic(broker.bootstrap)
            with RawClient.to(broker.bootstrap) as client:
                sender = Numbered(client, checker)
                codes = [sender.send(3000) for _ in range(150)]
                assert ErrorCode.NONE in codes
                assert ErrorCode.KAFKA_STORAGE_ERROR in codes
                refused = codes.index(ErrorCode.KAFKA_STORAGE_ERROR)
                assert set(codes[refused:]) <= {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE}
                # Readers are served all the while.
                assert len(client.read_all(TOPIC)) == codes.count(ErrorCode.NONE)
                ballast.unlink()
                assert sender.send(3000) is ErrorCode.NONE
            broker.kill()
            broker.start()
            read_log(broker.bootstrap, checker)
    assert not checker.violations(), verdict(checker)


def test_a_disk_that_is_full_at_the_start_is_said_in_a_sentence(tmp_path: Path) -> None:
    with small_tmpfs(tmp_path / "small", "64k") as disk:
        (disk / "ballast").write_bytes(bytes(60_000))
        broker = OttlaProcess(tmp_path / "broker")
        broker.data_dir = disk / "data"
        with pytest.raises(BrokerDidNotStart) as failed:
            broker.start(timeout_s=20)
        assert "Traceback" not in str(failed.value)


def test_a_failed_fsync_takes_the_directory_offline(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("a failing fsync of a whole broker needs strace")
    checker = Checker()
    with OttlaProcess(tmp_path / "broker", {"log.flush.interval.messages": "1"}) as broker:
        create_topic(broker.bootstrap)
        with RawClient.to(broker.bootstrap) as client:
            sender = Numbered(client, checker)
            for _ in range(20):
                assert sender.send(500) is ErrorCode.NONE
            with failing_fsync(broker.pid):
                after = [outcome(sender) for _ in range(5)]
        # The fault is over; what it did is not.
        after += [outcome(sender, broker) for _ in range(3)]
        assert ErrorCode.NONE not in after, after
        assert ErrorCode.KAFKA_STORAGE_ERROR in after or None in after
        if broker.running:
            broker.kill()
        broker.start()
        read_log(broker.bootstrap, checker)
    assert not checker.violations(), verdict(checker)


def outcome(sender: Numbered, broker: OttlaProcess | None = None) -> ErrorCode | None:
    """The error code, or None when there is no broker to give one: as Kafka, it may end with its last directory."""
    try:
        if broker is not None:
            sender.client = RawClient.to(broker.bootstrap)
        return sender.send(500)
    except (ConnectionClosed, OSError):
        return None


@contextmanager
def failing_fsync(pid: int) -> Iterator[None]:
    """While it lasts every fsync of the process says EIO."""
    calls = "fsync,fdatasync"
    strace = subprocess.Popen(
        [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            f"trace={calls}",
            "-e",
            f"inject={calls}:error=EIO",
            "-p",
            str(pid),
        ],
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: _is_traced(pid) or strace.poll() is not None)
        if strace.poll() is not None:
            assert strace.stderr is not None
            pytest.skip(f"strace may not trace here: {strace.stderr.read().decode().strip()}")
        time.sleep(0.2)
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.wait(20)


def _is_traced(pid: int) -> bool:
    text = Path(f"/proc/{pid}/status").read_text()
    return "TracerPid:\t0\n" not in text
