"""What executors, networks and disks do to the spool: it goes on, and takes no more than it may."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.spark.spool import server
from ottla.spark.spool.files import EncodedBatch, SpoolDamaged, SpooledBatch, Winner
from ottla.spark.spool.sending import SpoolTarget, SpoolUnreachable, begin, deliver, send
from ottla.spark.spool.server import SpoolServer
from ottla.spark.spool.wire import (
    FRAME,
    GREETING,
    LENGTH,
    NONCE_BYTES,
    Hello,
    SpoolRefused,
    Sum,
    proof,
    receive_exactly,
    receive_verdict,
)
from tests.spark.spool.test_spool import Way, batches, both_ways, read


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolServer]:
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as server:
        yield server


def eventually(is_so: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def introduced(spool: SpoolServer, batch: SpooledBatch, attempt: int = 1) -> socket.socket:
    """A connection that may send frames."""
    connection = socket.create_connection(("127.0.0.1", spool.address.port))
    nonce = receive_exactly(connection, len(GREETING) + NONCE_BYTES)[len(GREETING) :]
    hello = Hello(batch.id, 0, attempt).to_bytes()
    connection.sendall(proof(spool.address.secret, nonce, hello) + LENGTH.pack(len(hello)) + hello)
    receive_verdict(connection)
    return connection


def receivers() -> int:
    return sum("process_request_thread" in one.name for one in threading.enumerate())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_half_a_frame_is_waited_for_no_longer_than_its_batch(spool: SpoolServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(server, "_LOOK_S", 0.05)
    batch = spool.begin()
    with introduced(spool, batch) as silent:
        silent.sendall(FRAME.pack(1000, 6, 0, 1) + b"orders" + bytes(500))
        eventually(lambda: len(list(batch.path.iterdir())) == 1)
        total = send(spool.target(batch), 0, 2, batches(2))
        time.sleep(0.2)  # it was looked for several times
        assert receivers() == 1, "somebody still waits for this one"
        assert read(batch, [Winner(0, 2, total)]) == batches(2)
        batch.close()
        eventually(lambda: receivers() == 0)
        assert silent.recv(100) == b"", "it was hung up on"


def test_strangers_who_say_nothing_keep_nobody_out_and_take_no_more_threads_than_they_may(
    spool: SpoolServer, monkeypatch: Any
) -> None:
    monkeypatch.setattr(server, "_STRANGERS_MAX", 20)
    batch = spool.begin()
    strangers = [socket.create_connection(("127.0.0.1", spool.address.port)) for _ in range(200)]
    try:
        total = send(spool.target(batch), 0, 1, batches(1))
        assert read(batch, [Winner(0, 1, total)]) == batches(1)
        eventually(lambda: receivers() <= 20)
    finally:
        for one in strangers:
            one.close()


@both_ways
def test_two_attempts_of_a_task_that_take_turns_do_not_mix(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    both = threading.Barrier(2)

    def alternating(seed: int) -> Iterator[EncodedBatch]:
        for one in batches(seed):
            both.wait(60)
            yield one

    with ThreadPoolExecutor(2) as pool:
        sums = list(pool.map(lambda one: way(spool.target(batch), 0, one, alternating(one)), (1, 2)))
    for attempt, total in enumerate(sums, start=1):
        assert read(batch, [Winner(0, attempt, total)]) == batches(attempt)


@both_ways
def test_an_attempt_is_sent_once(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    with introduced(spool, batch), pytest.raises(SpoolRefused, match="attempt 1 of task 0 is being sent already"):
        way(spool.target(batch), 0, 1, batches(2))


@both_ways
def test_a_thousand_tasks_leave_no_descriptors_open(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    before = open_files()
    content = batches(1, count=2, size_max=100)

    def run(task: int) -> Winner:
        return Winner(task, task, way(spool.target(batch), task, task, content))

    with ThreadPoolExecutor(32) as pool:
        winners = list(pool.map(run, range(1000)))
    assert len(read(batch, winners)) == 2000
    # Fewer, where what other tests left is collected meanwhile.
    eventually(lambda: open_files() <= before)


def test_an_attempt_of_another_machine_or_user_sends(spool: SpoolServer, tmp_path: Path) -> None:
    """The folder is not there, or may not be written to: that is no failure."""
    batch = spool.begin()
    elsewhere = SpoolTarget(spool.address, str(tmp_path / "not-here" / batch.id))
    total = deliver(elsewhere, 0, 1, batches(1))
    assert read(batch, [Winner(0, 1, total)]) == batches(1)


@pytest.mark.parametrize("host", ["localhost", "::1", "[::1]"])
def test_the_driver_may_be_called_by_a_name_or_an_ipv6_address(tmp_path: Path, host: str) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with SpoolServer(host=host, folder=tmp_path) as spool:
        batch = spool.begin()
        total = send(spool.target(batch), 0, 1, batches(1))
        assert read(batch, [Winner(0, 1, total)]) == batches(1)


def test_a_host_that_is_not_this_machine_is_named(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=r"cannot listen on no-such-host\.invalid:0"):
        SpoolServer(host="no-such-host.invalid", folder=tmp_path)


@both_ways
def test_a_folder_that_was_cleaned_away_is_made_anew(spool: SpoolServer, tmp_path: Path, way: Way) -> None:
    lost = spool.begin()
    total = way(spool.target(lost), 0, 1, batches(1))
    for one in tmp_path.iterdir():
        shutil.rmtree(one)
    with pytest.raises(SpoolRefused, match="this batch is over"):
        way(spool.target(lost), 0, 2, batches(1))
    with pytest.raises(SpoolDamaged, match="did not arrive whole"):
        lost.check([Winner(0, 1, total)])
    assert issubclass(SpoolDamaged, Retriable)
    batch = spool.begin()
    total = way(spool.target(batch), 0, 1, batches(1))
    assert read(batch, [Winner(0, 1, total)]) == batches(1)
    assert len(list(tmp_path.iterdir())) == 1


@both_ways
def test_a_file_that_is_cut_off_or_gone_is_noticed_while_it_is_read(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    winner = Winner(0, 1, way(spool.target(batch), 0, 1, batches(1)))
    frames = batch.frames([winner])
    next(frames)
    path = batch.path / "0-1"
    os.truncate(path, 100)
    with pytest.raises(SpoolDamaged, match="not as it was written"):
        list(batch.frames([winner]))
    path.unlink()
    with pytest.raises(SpoolDamaged, match="cannot be read: No such file"):
        list(batch.frames([winner]))


@both_ways
def test_a_task_may_have_nothing_to_send(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    assert way(spool.target(batch), 0, 1, []) == Sum(0, 0)
    assert read(batch, [Winner(0, 1, Sum(0, 0)), Winner(1, 2, Sum(0, 0))]) == []


class Enormous:
    def __len__(self) -> int:
        return 1 << 31


@both_ways
def test_a_record_of_two_gigabytes_is_refused_with_a_sentence(spool: SpoolServer, way: Way) -> None:
    enormous: Any = Enormous()
    with pytest.raises(OttlaError, match=r"a record for 'orders' takes 2,147,483,648 bytes, which no topic takes\."):
        way(spool.target(spool.begin()), 0, 1, [("orders", 0, 1, enormous)])


def test_a_slow_disk_makes_tasks_wait(spool: SpoolServer, monkeypatch: Any) -> None:
    """What is in no file yet is in the buffers of one connection, however much a task has to send."""
    written = 0
    goes_on = threading.Event()
    write = SpooledBatch.append

    def slow(batch: SpooledBatch, file: Any, data: Any) -> None:
        nonlocal written
        assert goes_on.wait(60)
        written += len(data)
        write(batch, file, data)

    monkeypatch.setattr(SpooledBatch, "append", slow)
    batch = spool.begin()
    piece = bytes(1 << 20)
    taken = 0

    def many() -> Iterator[EncodedBatch]:
        nonlocal taken
        for _ in range(200):
            taken += len(piece)
            yield "orders", 0, 1, piece

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, spool.target(batch), 0, 1, many())
        before = -1
        while taken != before:  # until it stands still
            before = taken
            time.sleep(0.5)
        assert taken < 40 * len(piece)
        assert written == 0
        goes_on.set()
        assert sending.result(120) == Sum(200, 200 * len(piece))


@both_ways
def test_another_process_of_the_driver_begins_and_ends_a_batch(spool: SpoolServer, tmp_path: Path, way: Way) -> None:
    batch = begin(spool.address)
    assert batch.path.is_relative_to(tmp_path)
    total = way(spool.target(batch), 0, 1, batches(1))
    assert read(batch, [Winner(0, 1, total)]) == batches(1)
    batch.close()
    with pytest.raises(SpoolRefused, match="this batch is over"):
        way(spool.target(batch), 0, 2, batches(1))


def test_a_driver_that_is_gone_begins_nothing(tmp_path: Path) -> None:
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as gone:
        address = gone.address
    with pytest.raises(SpoolUnreachable, match="cannot be reached"):
        begin(address)


@pytest.mark.parametrize("batch_id", ["", "..", ".", "/tmp", "a" * 32, "../" + "a" * 32])
def test_only_batches_are_found(spool: SpoolServer, batch_id: str) -> None:
    spool.begin()
    assert spool.find(batch_id) is None
