"""Threads for what blocks: one for each kind of work, so that what takes minutes holds back nothing else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

from ottla.common.threads import MakeThreads

CHECKPOINTS, DELETIONS, COPIES = "checkpoints", "deletions", "copies"


class Background:
    def __init__(self, make_threads: MakeThreads) -> None:
        self._make_threads = make_threads
        self._threads: dict[str, Executor] = {}

    def submit(self, work: Callable[[], None], kind: str) -> Future[None]:
        thread = self._threads.get(kind)
        if thread is None:
            thread = self._threads[kind] = self._make_threads(1, f"ottla-{kind}")
        return thread.submit(work)

    def close(self) -> None:
        """Waits for what is under way."""
        for thread in self._threads.values():
            thread.shutdown(wait=True)
        self._threads.clear()
