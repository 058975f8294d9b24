"""Ctrl-C as a wish that is asked for: what was found until then is shown. Before it is asked for nothing was found, and
Ctrl-C ends the command as it does everywhere: a cluster that cannot be reached is not waited for."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any, Self

# As the command itself has them.
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Interruptible:
    """Once somebody asks, the first Ctrl-C or SIGTERM is noted; the second ends the command."""

    def __init__(self) -> None:
        self._signal: int | None = None
        self._is_asked_for = False
        self._before: dict[int, Any] = {}

    def is_set(self) -> bool:
        self._is_asked_for = True
        return self._signal is not None

    @property
    def status(self) -> int:
        return EXIT_TERMINATED if self._signal == signal.SIGTERM else EXIT_INTERRUPTED

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, signum: int, frame: FrameType | None) -> None:
        if self._signal is not None or not self._is_asked_for:
            if signum == signal.SIGTERM:
                sys.exit(EXIT_TERMINATED)
            raise KeyboardInterrupt
        self._signal = signum
