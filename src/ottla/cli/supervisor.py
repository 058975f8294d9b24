"""Keeps child processes alive: several brokers of one `ottla start`.

The first start of all of them either succeeds as a whole or ends as a whole. From then on one that dies is started
again, after a pause that doubles while it keeps dying. What the children log goes to stderr line by line, each with the
name of its child. They lead sessions of their own, so a Ctrl-C reaches them once, through us, and they are told by the
kernel if we die ourselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.cli.interrupts import EXIT_TERMINATED
from ottla.cli.output import notice
from ottla.common.errors import OttlaError

PAUSE_S_FIRST, PAUSE_S_MAX = 1.0, 30.0
# One that lived for so long is not dying again and again.
LIVED_S = 60.0
LINE_BYTES_MAX = 1 << 20
PR_SET_PDEATHSIG = 1
# Also while it was still starting, before it could say anything about signals.
STOPPED = (0, -signal.SIGTERM, EXIT_TERMINATED)


@dataclass
class Child:
    """A command that prints one line beginning with `ready` when it serves."""

    name: str
    command: Sequence[str]
    ready_line: str = ""
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)
    process: asyncio.subprocess.Process | None = None


class Supervisor:
    def __init__(self, children: Sequence[Child], *, logs_json: bool = False) -> None:
        self.children = children
        self._logs_json = logs_json
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Until SIGTERM, SIGINT or SIGHUP; OttlaError if one of them does not start or does not stop cleanly."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._stopping.set)
        lives = [asyncio.create_task(self._live(child)) for child in self.children]
        try:
            if await self._are_all_ready(lives):
                on_ready()
            await self._stopping.wait()
        finally:
            self._stopping.set()
            self._terminate()
            outcomes = await asyncio.gather(*lives, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _are_all_ready(self, lives: Sequence[asyncio.Task[None]]) -> bool:
        """False if somebody wants us to stop before."""
        ready = asyncio.create_task(self._await_all())
        stopping = asyncio.create_task(self._stopping.wait())
        await _first_done(ready, stopping, *lives)
        if not ready.done():
            self._stopping.set()  # one has given up, or we were told to
        for waiting in (ready, stopping):
            waiting.cancel()
        return not self._stopping.is_set()

    async def _await_all(self) -> None:
        for child in self.children:
            await child.is_ready.wait()

    async def _live(self, child: Child) -> None:
        pause_s = PAUSE_S_FIRST
        while not self._stopping.is_set():
            started = time.monotonic()
            status = await self._life(child)
            if self._stopping.is_set():
                if status not in STOPPED:
                    raise OttlaError(f"{child.name} has not stopped cleanly: {_how(status)}; its log says why.")
                return
            if not all(other.is_ready.is_set() for other in self.children):
                raise OttlaError(f"{child.name} has not started: {_how(status)}; its log says why.")
            if time.monotonic() - started > LIVED_S:
                pause_s = PAUSE_S_FIRST
            notice(f"{child.name} has ended ({_how(status)}): starting it again in {pause_s:.0f} s", "red")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            pause_s = min(PAUSE_S_MAX, pause_s * 2)

    async def _life(self, child: Child) -> int:
        """From its start to its end: the exit status."""
        child.process = await asyncio.create_subprocess_exec(
            *child.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            env={name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"},
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        if self._stopping.is_set():  # said while it was being made
            self._terminate()
        assert child.process.stdout is not None
        assert child.process.stderr is not None
        await asyncio.gather(self._listen(child, child.process.stdout), self._pass_on(child, child.process.stderr))
        return await child.process.wait()

    def _terminate(self) -> None:
        for child in self.children:
            if child.process is not None and child.process.returncode is None:
                child.process.send_signal(signal.SIGTERM)

    # -- what they say ---------------------------------------------------------------------------------------------

    async def _listen(self, child: Child, stdout: asyncio.StreamReader) -> None:
        async for line in _lines(stdout):
            if line.startswith("ready"):
                child.ready_line = line
                child.is_ready.set()

    async def _pass_on(self, child: Child, stderr: asyncio.StreamReader) -> None:
        async for line in _lines(stderr):
            if self._logs_json and line.startswith("{"):
                text = f'{{"broker": {json.dumps(child.name)}, {line[1:]}'
            else:
                text = f"{child.name}: {line}"
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue  # longer than any line of a log
        if not line:
            return
        yield line.decode(errors="replace").rstrip("\n")


async def _first_done(*tasks: asyncio.Future[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def _how(status: int) -> str:
    return f"{signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _die_with_parent() -> None:
    """SIGTERM from the kernel, if whoever started us is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
