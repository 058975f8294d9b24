"""A server ends with the first signal, and does not have to be waited for: the second one ends it at once."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

SERVER = """
import asyncio, logging
from ottla.http.until_signal import run_until_signal

class Service:
    url = "http://here"
    async def start(self): pass
    async def stop(self):
        print("stopping", flush=True)
        await asyncio.sleep({stop_s})

asyncio.run(run_until_signal(Service(), lambda line: print(line, flush=True), logging.getLogger()))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_stops_it(number: signal.Signals) -> None:
    with started(stop_s=0) as server:
        assert line_of(server) == "ready http://here"
        server.send_signal(number)
        assert line_of(server) == "stopping"
        assert server.wait(60) == 0


READY = "ready http://here"

# A thread that waits for a cluster that says nothing, in whatever it is: it cannot be interrupted.
SILENT = """
import asyncio, logging, os, threading
from starlette.concurrency import run_in_threadpool
from ottla.http.until_signal import run_until_signal

def ask():
    os.write(1, b"asking\\n")  # in one piece: two threads tell
    threading.Event().wait()

class Service:
    url = "http://here"
    async def start(self):
        {start}
    async def stop(self):
        {stop}

log = logging.getLogger()
asyncio.run(run_until_signal(Service(), lambda line: os.write(1, line.encode() + b"\\n"), log, leave_s_max=0.5))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("start", "stop", "told"),
    [
        ("await asyncio.to_thread(ask)", "raise AssertionError", {"asking"}),
        ("pass", "await asyncio.to_thread(ask)", {READY}),
        ("asyncio.get_running_loop().create_task(asyncio.to_thread(ask))", "pass", {READY, "asking"}),
        ("asyncio.get_running_loop().create_task(run_in_threadpool(ask))", "pass", {READY, "asking"}),
        ("threading.Thread(target=ask).start()", "pass", {READY, "asking"}),
    ],
    ids=["while it starts", "while it stops", "of its executor", "of a page", "of its own"],
)
def test_a_thread_that_waits_for_ever_does_not_hold_it_up(
    number: signal.Signals, start: str, stop: str, told: set[str]
) -> None:
    """It never ended."""
    program = SILENT.format(start=start, stop=stop)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as server:
        assert {line_of(server) for _ in told} == told
        server.send_signal(number)
        try:
            assert server.wait(60) == 0
        finally:
            server.kill()


@pytest.mark.parametrize("verb", [["console"], ["monitor", "start"], ["registry", "start"]], ids=" ".join)
def test_servers_do_not_wait_for_a_cluster_that_says_nothing(verb: list[str]) -> None:
    """They took up to half a minute."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = [sys.executable, "-m", "ottla", *verb, "--listen", "127.0.0.1:0"]
        command += ["-b", f"127.0.0.1:{silent.getsockname()[1]}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            met, _ = silent.accept()
            if verb[0] != "registry":  # which reads its topic before it serves
                assert line_of(server).startswith("ready http://")
            server.terminate()
            try:
                _, log = server.communicate(timeout=60)
            finally:
                server.kill()
                met.close()
        assert server.returncode == 0, log
        assert "stopping" in log and "left behind" in log and "Traceback" not in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_one_ends_a_stop_that_takes_long(number: signal.Signals) -> None:
    with started(stop_s=3_600) as server:
        assert line_of(server) == "ready http://here"
        server.send_signal(number)
        assert line_of(server) == "stopping"
        server.send_signal(number)
        assert server.wait(60) == -number


def started(stop_s: int) -> subprocess.Popen[str]:
    program = SERVER.format(stop_s=stop_s)
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def line_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().strip()
