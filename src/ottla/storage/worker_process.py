"""The broker's end of the worker process: started when there is a job, ended when there has been none for a while.

Pipes and a Popen made in a thread instead of asyncio's subprocesses: those start the child on the loop and need a child
watcher, which a broker inside a test's thread does not have for certain.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import ottla

_LINE_BYTES_MAX = 16 * 1024 * 1024

RunInThread = Callable[..., Awaitable[Any]]


class WorkerDied(Exception):
    """The process could not be started, or ended in the middle of a job."""


class WorkerProcess:
    def __init__(self, run_in_thread: RunInThread, command: list[str] | None = None) -> None:
        self._run_in_thread = run_in_thread
        self._command = command or [sys.executable, "-m", "ottla.storage.worker"]
        self._process: subprocess.Popen[bytes] | None = None
        # A start may be under way in a thread while the broker closes.
        self._starting = threading.Lock()
        self._closed = False
        self._answers: asyncio.StreamReader | None = None
        self._transport: asyncio.BaseTransport | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def run(self, job: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The worker's answers to one job, up to and with the one that ends it. Raises WorkerDied.

        A caller that stops listening must `kill`: there is no other way to end a job."""
        process = await self._started()
        line = (json.dumps(job) + "\n").encode()
        assert process.stdin is not None
        assert self._answers is not None
        try:
            await self._run_in_thread(process.stdin.write, line)
            await self._run_in_thread(process.stdin.flush)
            while True:
                answer = await self._answers.readline()
                if not answer.endswith(b"\n"):
                    break
                message: dict[str, Any] = json.loads(answer)
                yield message
                if "done" in message or "error" in message:
                    return
        except BrokenPipeError:
            pass
        await self.kill()
        raise WorkerDied("the worker process ended in the middle of a job")

    async def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            if self._process.poll() is None:
                return self._process
            await self.kill()
        try:
            process: subprocess.Popen[bytes] = await self._run_in_thread(self._start)
        except OSError as error:
            raise WorkerDied(f"the worker process cannot be started: {error.strerror}") from None
        self._answers = asyncio.StreamReader(limit=_LINE_BYTES_MAX)
        protocol = asyncio.StreamReaderProtocol(self._answers)
        assert process.stdout is not None
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, process.stdout)
        return process

    def _start(self) -> subprocess.Popen[bytes]:
        # The child finds the same package as this process, installed or not.
        places = [str(Path(ottla.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
        with self._starting:
            if self._closed:
                raise WorkerDied("the broker is closing")
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            return self._process

    async def close(self) -> None:
        """End it, and start no other."""
        with self._starting:
            self._closed = True
        await self.kill()

    async def kill(self) -> None:
        """End it now, in the middle of a job if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        assert process.stdin is not None
        try:
            process.stdin.close()
        except OSError:  # what was not sent yet is not missed
            pass
        await self._run_in_thread(process.wait)
