"""Files and folders that are out of use and go when nobody may be reading them any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

from ottla.common.clock import Clock
from ottla.storage.background import DELETIONS, Background


class DoomedFiles:
    def __init__(self, clock: Clock, background: Background) -> None:
        self._clock = clock
        self._background = background
        # With the monotonic time when it is due.
        self._paths: list[tuple[int, Path]] = []
        self._closing = False

    def add(self, paths: Iterable[Path], delay_ms: int) -> None:
        due_ms = self._clock.monotonic_ms() + delay_ms
        self._paths += [(due_ms, path) for path in paths]

    def tick(self) -> Future[None] | None:
        """Remove those whose delay is over, in a thread; None when there are none."""
        now_ms = self._clock.monotonic_ms()
        due = [path for at_ms, path in self._paths if at_ms <= now_ms]
        if not due:
            return None
        self._paths = [(at_ms, path) for at_ms, path in self._paths if at_ms > now_ms]
        return self._background.submit(lambda: self._remove(due), DELETIONS)

    def close(self) -> None:
        """What is left goes at the next start."""
        self._closing = True

    def _remove(self, paths: Iterable[Path]) -> None:
        for path in paths:
            if self._closing:
                return
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
