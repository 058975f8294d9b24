"""The worker process: its answers, its errors, and that it never outlives its broker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.storage.compaction.job import CompactionJob, GroupResult
from ottla.storage.compaction.plan import make_job, survey
from ottla.storage.compaction.swap import swap_in
from ottla.storage.compaction.throttle import Throttle
from ottla.storage.log import Log
from ottla.storage.worker_process import WorkerDied, WorkerProcess
from tests.storage.batches import NOW_MS, open_log
from tests.storage.cleaning import COMPACT, pairs, put

REPO_ROOT = Path(__file__).resolve().parents[2]


def dirty(directory: Path) -> Log:
    log = open_log(directory, COMPACT)
    for n in range(60):
        put(log, (b"key-%d" % (n % 4), b"%d" % n))
    log.roll(NOW_MS)
    return log


def job_for(log: Log, bytes_per_second: float | None = None) -> CompactionJob:
    return make_job(survey(log, NOW_MS), NOW_MS, NOW_MS, map_bytes_max=1 << 20, bytes_per_second=bytes_per_second)


def as_line(job: CompactionJob) -> dict[str, Any]:
    return {"job": "compact", **job.to_json()}


def in_thread(work: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
    return asyncio.get_running_loop().run_in_executor(None, work, *arguments)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)


async def test_a_round_through_the_process(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    worker = WorkerProcess(in_thread)
    job = job_for(log)
    answers = []
    async for answer in worker.run(as_line(job)):
        answers.append(answer)
        if "group" in answer:
            swap_in(log, job, GroupResult(**answer["group"]))
    assert answers[-1]["done"]["end_offset"] == 60
    assert [offset for offset, _, _ in pairs(log)] == [56, 57, 58, 59]
    assert worker.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) >= min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
    # The same process takes the next job.
    pid = worker.pid
    assert ["error" in one async for one in worker.run({"job": "compact"})] == [True]
    assert worker.pid == pid
    await worker.close()
    wait_until_gone(pid)


async def test_what_goes_wrong_with_a_log_is_told_by_kind(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    worker = WorkerProcess(in_thread)
    job = job_for(log)
    path = log.segments[0].path(".log")
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    answers = [one async for one in worker.run(as_line(job))]
    assert answers == [{"error": "damaged", "message": "wrong CRC at position 74 of segment 0"}]
    path.unlink()
    answers = [one async for one in worker.run(as_line(job))]
    assert [one["error"] for one in answers] == ["gone"]
    answers = [one async for one in worker.run({"job": "no such thing"})]
    assert [one["error"] for one in answers] == ["unexpected"]
    await worker.close()


async def test_a_worker_that_dies_is_noticed_and_replaced(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    worker = WorkerProcess(in_thread)

    async def slow() -> None:
        async for _ in worker.run(as_line(job_for(log, bytes_per_second=500))):
            pass

    task = asyncio.create_task(slow())
    while worker.pid is None:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        await task
    answers = [one async for one in worker.run(as_line(job_for(log)))]
    assert "done" in answers[-1]
    # Dead between two jobs: the next one starts another.
    assert worker._process is not None
    worker._process.kill()
    worker._process.wait()
    answers = [one async for one in worker.run(as_line(job_for(log)))]
    assert "done" in answers[-1]
    await worker.close()


async def test_a_process_that_cannot_be_started(tmp_path: Path) -> None:
    worker = WorkerProcess(in_thread, ["/no/such/program"])
    with pytest.raises(WorkerDied, match="cannot be started"):
        [one async for one in worker.run({"job": "compact"})]
    await worker.close()
    closed = WorkerProcess(in_thread)
    await closed.close()
    with pytest.raises(WorkerDied, match="closing"):
        [one async for one in closed.run({"job": "compact"})]


PARENT = """
import asyncio, json, sys
from ottla.storage.worker_process import WorkerProcess

async def main():
    worker = WorkerProcess(lambda work, *given: asyncio.get_running_loop().run_in_executor(None, work, *given))

    async def work():
        async for answer in worker.run(json.loads(sys.argv[1])):
            print(answer, flush=True)

    task = asyncio.create_task(work())
    while worker.pid is None:
        await asyncio.sleep(0.01)
    print(worker.pid, flush=True)
    await task

asyncio.run(main())
"""


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_the_worker_ends_with_its_parent_in_the_middle_of_a_job(tmp_path: Path, signal_number: int) -> None:
    log = dirty(tmp_path)
    line = json.dumps(as_line(job_for(log, bytes_per_second=100)))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, line],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPO_ROOT / "src")},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.3)
    assert is_alive(pid)
    parent.send_signal(signal_number)
    parent.wait()
    wait_until_gone(pid)
    parent.stdout.close()
    before = pairs(log)
    again = open_log(tmp_path, COMPACT)
    assert pairs(again) == before
    assert not list(tmp_path.glob("*.cleaned"))


def test_the_throttle_keeps_to_its_rate() -> None:
    now_s, slept = 0.0, 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s, slept
        now_s += seconds
        slept += seconds

    throttle = Throttle(1000.0, lambda: now_s, sleep)
    for _ in range(50):
        throttle.spend(100)
    assert slept == pytest.approx(5.0, abs=0.1)
    unlimited = Throttle(None, lambda: now_s, sleep)
    unlimited.spend(1 << 40)
    assert slept == pytest.approx(5.0, abs=0.1)
