"""fsync off the event loop: jobs run in a few threads, their outcome is handed back to the thread that owns the logs.

fsync releases the interpreter lock, so appends go on meanwhile. One job per log at a time: what is appended while it
runs waits for the next, which then covers it all (group commit). A sync that fails is never tried again: the kernel may
have dropped the dirty pages and would call the second try a success.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from time import perf_counter

from ottla.common.threads import MakeThreads, make_threads
from ottla.storage.disk import DISK, Disk, OpenFile
from ottla.storage.log_dirs.refusals import PASSING

# Syncs that run together share the commits of the file system's journal: a stop with 2,000 changed logs needs them.
FLUSH_THREADS = 8
_REMEMBERED = 4_096


class NotOpened(OSError):
    """A file to be synced could not be opened for want of something that may be there again. Nothing is lost by it."""


class FlushJob:
    """Files to sync, and the offset up to which the log is on disk afterwards."""

    __slots__ = ("end_offset", "files", "give_back", "paths")

    def __init__(self, end_offset: int, files: list[OpenFile], paths: list[Path]) -> None:
        self.end_offset = end_offset
        self.files = files
        self.paths = paths
        # After NotOpened: what was to be synced is to be synced by the next job.
        self.give_back: Callable[[], None] = lambda: None

    def run(self, disk: Disk) -> None:
        for file in self.files:
            disk.fsync(file.fd)
        for path in self.paths:
            try:
                file = disk.open(path, os.O_RDONLY)
            except FileNotFoundError:  # deleted with its segment meanwhile
                continue
            except OSError as error:
                if error.errno not in PASSING:
                    raise
                raise NotOpened(error.errno, error.strerror) from error
            disk.fsync(file.fd)


class Flusher:
    """Outcomes are delivered in the event loop that the job was submitted from, or in the thread that calls `drain`."""

    def __init__(self, disk: Disk = DISK, make_threads: MakeThreads = make_threads) -> None:
        self._disk = disk
        self._make_threads = make_threads
        self._pool: Executor | None = None
        self._outcomes: deque[Callable[[], object]] = deque()
        self._delivering = threading.Lock()
        self._is_closing = False
        # How long each of the last syncs took, in seconds; whoever reads them takes them away.
        self.took_s: deque[float] = deque(maxlen=_REMEMBERED)

    def submit(self, job: FlushJob, finished: Callable[[OSError | None], None]) -> None:
        if self._pool is None:
            self._pool = self._make_threads(FLUSH_THREADS, "ottla-flush")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        self._pool.submit(self._run, job, finished, loop)

    def _run(
        self, job: FlushJob, finished: Callable[[OSError | None], None], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        outcome: OSError | None = None
        began = perf_counter()
        try:
            job.run(self._disk)
        except OSError as error:
            outcome = error
        self.took_s.append(perf_counter() - began)
        self._outcomes.append(lambda: finished(outcome))
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it was closed meanwhile
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._delivering:
            if not self._is_closing:
                self.drain()

    def drain(self) -> None:
        """Deliver outcomes that wait here; in the owner's thread."""
        while self._outcomes:
            self._outcomes.popleft()()

    def take_over(self) -> None:
        """The logs belong to this thread now, until `close` is done: no loop delivers an outcome beside it."""
        with self._delivering:
            self._is_closing = True

    def close(self) -> None:
        """Wait for the jobs under way, those that their outcomes start included."""
        self.take_over()
        while self._pool is not None:
            # Who submits a job from now on gets new threads, and is waited for as well.
            pool, self._pool = self._pool, None
            pool.shutdown(wait=True)
            self.drain()
        self._is_closing = False
