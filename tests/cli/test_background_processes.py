"""A process in the background is found again by later commands, and never mistaken for another one."""

from __future__ import annotations

import json
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.cluster.background import Background
from tests.crash.load import wait_until

# exit(2), by which a thread ends alone.
EXIT_OF_A_THREAD = {"x86_64": 60, "aarch64": 93}
SLEEP = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Background]:
    made = Background("sleeper", tmp_path / "sleeper")
    yield made
    made.send(signal.SIGKILL)


def test_it_is_found_again_by_its_folder(process: Background) -> None:
    assert (process.pid, process.state) == (None, "stopped")
    process.start(SLEEP)
    again = Background("sleeper", process.folder)
    assert again.pid is not None
    assert again.state == "running"
    process.start(SLEEP)  # nothing: it runs
    assert process.pid == again.pid


def test_signals_pause_it_let_it_go_on_and_end_it(process: Background) -> None:
    process.start(SLEEP)
    for number, state in ((signal.SIGSTOP, "paused"), (signal.SIGCONT, "running"), (signal.SIGKILL, "stopped")):
        assert process.send(number)
        assert process.await_state(state, 30), (number, process.state)
    assert not process.send(signal.SIGCONT)


@pytest.mark.skipif(platform.machine() not in EXIT_OF_A_THREAD, reason="the number of a system call is not known here")
def test_it_is_there_until_its_last_thread_has_ended(process: Background) -> None:
    """As Java may end under load: a cluster that was started again just then found its port taken."""
    first_ends = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        f"ctypes.CDLL(None).syscall({EXIT_OF_A_THREAD[platform.machine()]}, 0)"
    )
    process.start([sys.executable, "-c", first_ends])
    pid = process.pid
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert process.pid == pid
    assert process.send(signal.SIGKILL)
    assert process.await_state("stopped", 30)


def test_what_it_forked_gets_its_signals_too(process: Background, tmp_path: Path) -> None:
    family = [sys.executable, "-c", f"import subprocess; subprocess.run({SLEEP!r})"]
    process.start(family)
    while b"awake" not in process.log.read_bytes():
        assert process.state == "running"
    (child,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
    orphan = Background("orphan", tmp_path / "orphan")
    _remember(orphan, child)
    process.send(signal.SIGKILL)
    assert process.await_state("stopped", 30)
    assert orphan.await_state("stopped", 30)


@pytest.mark.parametrize("difference", [{"started_ticks": 1}, {"boot_id": "another"}])
def test_a_pid_that_belongs_to_somebody_else_by_now_is_left_alone(
    process: Background, difference: dict[str, object]
) -> None:
    with subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL, start_new_session=True) as stranger:
        try:
            _remember(process, stranger.pid, **difference)
            assert process.pid is None
            assert not process.send(signal.SIGKILL)
            assert stranger.poll() is None
        finally:
            stranger.kill()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_file_is_nobody(process: Background, content: str) -> None:
    process.folder.mkdir()
    (process.folder / "process.json").write_text(content)
    assert process.state == "stopped"


def _remember(process: Background, pid: int, **difference: object) -> None:
    """As if it had been started here, with what is different."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    process.folder.mkdir(exist_ok=True)
    identity = {"pid": pid, "started_ticks": ticks, "boot_id": boot_id} | difference
    (process.folder / "process.json").write_text(json.dumps(identity))
