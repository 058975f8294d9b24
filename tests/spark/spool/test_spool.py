"""What tasks send is on the driver's disk as they sent it, and only what Spark accepted of it is read."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.spool.files import EncodedBatch, SpooledBatch, Winner
from ottla.spark.spool.sending import SpoolAddress, SpoolTarget, SpoolUnreachable, deliver, send
from ottla.spark.spool.server import SpoolServer
from ottla.spark.spool.wire import FRAME, GREETING, LENGTH, NONCE_BYTES, Hello, SpoolRefused, Sum, proof


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolServer]:
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as server:
        yield server


# How an attempt gets what it has encoded to the driver.
Way = Callable[[SpoolTarget, int, int, Iterable[EncodedBatch]], Sum]
both_ways = pytest.mark.parametrize("way", [send, deliver], ids=["from elsewhere", "on the driver's machine"])


def batches(seed: int, count: int = 20, size_max: int = 5000) -> list[EncodedBatch]:
    chance = random.Random(seed)
    return [
        (chance.choice(["orders", "größen", "o" * 249]), chance.randrange(9), 1 + index, chance.randbytes(size))
        for index, size in enumerate(chance.randrange(1, size_max) for _ in range(count))
    ]


def read(batch: SpooledBatch, winners: list[Winner]) -> list[EncodedBatch]:
    batch.check(winners)
    return [(*one.partition, one.records, bytes(one.data)) for one in batch.frames(winners)]


@both_ways
def test_all_attempts_at_once_arrive_whole_and_are_read_in_the_order_of_their_tasks(
    spool: SpoolServer, way: Way
) -> None:
    batch = spool.begin()
    sent = {task: batches(task, size_max=200_000) for task in range(12)}
    winners: list[Winner] = []

    def run(task: int) -> None:
        winners.append(Winner(task, 100 + task, way(spool.target(batch), task, 100 + task, sent[task])))

    threads = [threading.Thread(target=run, args=(task,)) for task in sent]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    expected = [one for task in sorted(sent) for one in sent[task]]
    assert read(batch, winners) == expected
    assert read(batch, winners) == expected, "it can be read again, as after a transaction that was aborted"


@both_ways
def test_attempts_that_spark_did_not_accept_are_not_read(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    lost = way(spool.target(batch), 0, 1, batches(1))
    taken = way(spool.target(batch), 0, 2, batches(2))
    zombie = way(spool.target(batch), 0, 3, batches(3))
    assert lost.frames == taken.frames == zombie.frames == 20
    assert read(batch, [Winner(0, 2, taken)]) == batches(2)


@both_ways
def test_a_task_that_dies_in_the_middle_leaves_nothing_that_counts(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()

    def dying() -> Iterator[EncodedBatch]:
        yield from batches(1)
        raise ValueError("a row cannot be written")

    with pytest.raises(ValueError, match="a row cannot"):
        way(spool.target(batch), 0, 1, dying())
    whole = way(spool.target(batch), 0, 2, batches(2))
    assert read(batch, [Winner(0, 2, whole)]) == batches(2)
    with pytest.raises(OttlaError, match="did not arrive whole"):
        batch.check([Winner(0, 1, Sum(20, 1))])


@both_ways
def test_a_result_that_does_not_match_what_arrived_is_refused(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    total = way(spool.target(batch), 0, 1, batches(1))
    with pytest.raises(OttlaError, match="task 0"):
        batch.check([Winner(0, 1, Sum(total.frames, total.bytes + 1))])


@both_ways
def test_an_attempt_of_an_earlier_run_is_told_that_it_is_over(spool: SpoolServer, way: Way) -> None:
    earlier = spool.begin()
    target = spool.target(earlier)
    earlier.close()
    with pytest.raises(SpoolRefused, match="this batch is over"):
        way(target, 0, 1, batches(1))


@both_ways
def test_an_attempt_that_outlives_its_batch_is_told_so_at_its_end(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()

    def slow() -> Iterator[EncodedBatch]:
        yield from batches(1)
        batch.close()

    with pytest.raises(SpoolRefused, match="this batch is over"):
        way(spool.target(batch), 0, 1, slow())


@both_ways
def test_a_full_disk_is_told_to_the_task_and_what_came_of_it_is_removed(
    spool: SpoolServer, monkeypatch: Any, way: Way
) -> None:
    batch = spool.begin()
    create = SpooledBatch.create

    def full(batch: SpooledBatch, hello: Hello) -> Any:
        create(batch, hello).close()
        return Path("/dev/full").open("wb", buffering=1024)  # the server closes it

    monkeypatch.setattr(SpooledBatch, "create", full)
    with pytest.raises(SpoolRefused, match=r"No space left on device; make room there, or set spark\.ottla\.spool"):
        way(spool.target(batch), 0, 1, batches(1, count=500, size_max=100_000))
    assert list(batch.path.iterdir()) == []
    monkeypatch.undo()
    later = way(spool.target(batch), 0, 2, batches(2))
    assert read(batch, [Winner(0, 2, later)]) == batches(2)


@both_ways
def test_memory_stays_the_same_for_a_frame_of_any_size(spool: SpoolServer, way: Way) -> None:
    batch = spool.begin()
    large = bytes(200 * 1024 * 1024)
    import tracemalloc

    tracemalloc.start()
    total = way(spool.target(batch), 0, 1, [("orders", 0, 1, large)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == Sum(1, len(large))
    assert peak < 8 * 1024 * 1024


def test_nobody_gets_in_without_the_secret(spool: SpoolServer) -> None:
    batch = spool.begin()
    guessed = SpoolTarget(SpoolAddress("127.0.0.1", spool.address.port, b"guessed"), str(batch.path))
    with pytest.raises(SpoolUnreachable, match="hung up"):
        send(guessed, 0, 1, batches(1))
    assert list(batch.path.iterdir()) == []


def test_a_proof_is_for_one_connection_only(spool: SpoolServer) -> None:
    batch = spool.begin()
    hello = Hello(batch.id, 0, 1).to_bytes()
    with socket.create_connection(("127.0.0.1", spool.address.port)) as first:
        nonce = first.recv(4096)[len(GREETING) :]
    overheard = proof(spool.address.secret, nonce, hello) + LENGTH.pack(len(hello)) + hello
    with socket.create_connection(("127.0.0.1", spool.address.port)) as second:
        second.recv(4096)
        second.sendall(overheard)
        assert second.recv(1) == b""


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_sent_by_others_harms_nobody(spool: SpoolServer, seed: int) -> None:
    batch = spool.begin()
    chance = random.Random(seed)
    with socket.create_connection(("127.0.0.1", spool.address.port)) as hostile:
        greeting = hostile.recv(4096)
        hello = Hello(batch.id, 0, 1).to_bytes()
        if chance.random() < 0.5:  # one who knows the secret and then talks nonsense
            mac = proof(spool.address.secret, greeting[-NONCE_BYTES:], hello)
            hostile.sendall(mac + LENGTH.pack(len(hello)) + hello)
            hostile.sendall(FRAME.pack(chance.randrange(2**32), chance.randrange(2**16), -1, -1))
        hostile.sendall(chance.randbytes(chance.randrange(1, 100)))
    total = send(spool.target(batch), 0, 2, batches(seed))
    assert read(batch, [Winner(0, 2, total)]) == batches(seed)


def test_what_a_killed_driver_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    code = (
        "import sys, time; from ottla.spark.spool.server import SpoolServer;"
        "spool = SpoolServer(host='127.0.0.1', folder=sys.argv[1]);"
        "print(spool.begin().id, flush=True); time.sleep(600)"
    )
    driver = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        driver.stdout.readline()
        with SpoolServer(host="127.0.0.1", folder=tmp_path) as beside:
            beside.open_folder()
            assert len(list(tmp_path.iterdir())) == 2, "one that lives is left alone"
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as following:
        following.open_folder()
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        SpoolServer(host="127.0.0.1", folder=tmp_path / "file") as spool,
        pytest.raises(OttlaError, match=r"cannot keep encoded records in .*file.*spark\.ottla\.spool\.dir"),
    ):
        spool.begin()


def test_a_port_that_is_taken_is_named_and_leaves_no_folder(spool: SpoolServer, tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=rf"127\.0\.0\.1:{spool.address.port}: .*spark\.ottla\.spool\.port"):
        SpoolServer(host="127.0.0.1", folder=tmp_path, port=spool.address.port)
    assert list(tmp_path.iterdir()) == []


@both_ways
def test_an_address_nobody_listens_on_says_which_setting_to_change(tmp_path: Path, way: Way) -> None:
    with SpoolServer(host="127.0.0.1", folder=tmp_path) as gone:
        target = gone.target(gone.begin())
    with pytest.raises(SpoolUnreachable, match=r"driver's spool .* cannot be reached .*spark\.ottla\.spool\.port"):
        way(target, 0, 1, batches(1))


@both_ways
def test_files_go_with_their_batch(spool: SpoolServer, tmp_path: Path, way: Way) -> None:
    batch = spool.begin()
    way(spool.target(batch), 0, 1, batches(1))
    held = sum(len(files) for _, _, files in os.walk(tmp_path))
    batch.close()
    assert sum(len(files) for _, _, files in os.walk(tmp_path)) == held - 1
