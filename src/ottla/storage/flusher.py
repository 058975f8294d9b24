"""fsync off the event loop: jobs run in a few threads, their outcome is handed back to the thread that owns the logs.

fsync releases the interpreter lock, so appends go on meanwhile. One job per log at a time: what is appended while it
runs waits for the next, which then covers it all (group commit). A sync that fails is never tried again: the kernel may
have dropped the dirty pages and would call the second try a success.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ottla.storage.disk import DISK, Disk, OpenFile

# Syncs that run together share the commits of the file system's journal: a stop with 2,000 changed logs needs them.
FLUSH_THREADS = 8


class FlushJob:
    """Files to sync, and the offset up to which the log is on disk afterwards."""

    __slots__ = ("end_offset", "files", "paths")

    def __init__(self, end_offset: int, files: list[OpenFile], paths: list[Path]) -> None:
        self.end_offset = end_offset
        self.files = files
        self.paths = paths

    def run(self, disk: Disk) -> None:
        for file in self.files:
            disk.fsync(file.fd)
        for path in self.paths:
            try:
                disk.fsync_path(path)
            except FileNotFoundError:  # deleted with its segment meanwhile
                continue


class Flusher:
    """Outcomes go to the event loop that the job was submitted from; outside of one they wait for `drain`."""

    def __init__(self, disk: Disk = DISK) -> None:
        self._disk = disk
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Callable[[], object]] = deque()

    def submit(self, job: FlushJob, finished: Callable[[OSError | None], None]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(FLUSH_THREADS, thread_name_prefix="ottla-flush")
        try:
            post: Callable[[Callable[[], object]], object] = asyncio.get_running_loop().call_soon_threadsafe
        except RuntimeError:
            post = self._waiting.append
        self._pool.submit(self._run, job, finished, post)

    def _run(
        self,
        job: FlushJob,
        finished: Callable[[OSError | None], None],
        post: Callable[[Callable[[], object]], object],
    ) -> None:
        outcome: OSError | None = None
        try:
            job.run(self._disk)
        except OSError as error:
            outcome = error
        try:
            post(lambda: finished(outcome))
        except RuntimeError:  # the loop was closed meanwhile
            self._waiting.append(lambda: finished(outcome))

    def drain(self) -> None:
        """Deliver outcomes that wait here; in the owner's thread."""
        while self._waiting:
            self._waiting.popleft()()

    def close(self) -> None:
        """Wait for the jobs under way, those that their outcomes start included."""
        while self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
            self.drain()
