"""A server ends with the first signal, and does not have to be waited for: the second one ends it at once."""

from __future__ import annotations

import signal
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
