"""Several children under one roof: all ready, all stopped, and one that dies comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import Cli

CHILD = """
import os, pathlib, signal, sys, time
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
def stop(*_):
    (folder / f"{name}.stopped").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print(f"{name} begins", file=sys.stderr, flush=True)
if (folder / f"{name}.broken").exists():
    sys.exit(3)
(folder / f"{name}.pid").write_text(str(os.getpid()))
print(f"ready address={name}", flush=True)
while True:
    time.sleep(0.05)
"""

PARENT = """
import asyncio, sys
from ottla.cli import supervisor
from ottla.common.errors import OttlaError
supervisor.PAUSE_S_FIRST = 0.1
async def main():
    children = [supervisor.Child(name, [sys.executable, sys.argv[1], sys.argv[2], name]) for name in ("a", "b")]
    told = lambda: print("ready", *(child.ready_line for child in children), flush=True)
    await supervisor.Supervisor(children).run(told)
try:
    asyncio.run(main())
except OttlaError as error:
    sys.exit(str(error))
"""


@contextmanager
def parent(folder: Path) -> Iterator[subprocess.Popen[str]]:
    script, child = folder / "parent.py", folder / "child.py"
    script.write_text(textwrap.dedent(PARENT))
    child.write_text(textwrap.dedent(CHILD))
    process = subprocess.Popen(
        [sys.executable, str(script), str(child), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=Cli().variables(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def pid_of(folder: Path, name: str) -> int:
    return int((folder / f"{name}.pid").read_text() or 0)


def test_all_are_ready_before_one_line_says_so_and_one_signal_stops_all(tmp_path: Path) -> None:
    with parent(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready ready address=a ready address=b\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert sorted(err.splitlines()) == ["a: a begins", "b: b begins"]
    assert (tmp_path / "a.stopped").exists()
    assert (tmp_path / "b.stopped").exists()


def test_one_that_dies_is_started_again_and_the_other_goes_on(tmp_path: Path) -> None:
    with parent(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        first, other = pid_of(tmp_path, "a"), pid_of(tmp_path, "b")
        os.kill(first, signal.SIGKILL)
        while pid_of(tmp_path, "a") in (0, first):
            assert process.poll() is None
            time.sleep(0.02)
        assert pid_of(tmp_path, "b") == other
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "a has ended (SIGKILL): starting it again in" in err


def test_one_that_cannot_start_at_first_ends_all(tmp_path: Path) -> None:
    (tmp_path / "b.broken").touch()
    with parent(tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == ""
    assert "b has not started: exit status 3; its log says why." in err
    assert (tmp_path / "a.stopped").exists() or not (tmp_path / "a.pid").exists()


def test_children_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    with parent(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()
        process.wait(30)
        deadline = time.monotonic() + 60
        while not all((tmp_path / f"{name}.stopped").exists() for name in "ab"):
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize("more", [[], ["--config", "server.properties"]])
def test_several_brokers_need_a_zookeeper(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=3\n")
    more = [str(tmp_path / part) if part.endswith("properties") else part for part in more]
    sentence = Cli().fails(1, "start", "--brokers", "2", "--data-dir", tmp_path / "data", *more)
    assert "zookeeper.connect" in sentence
