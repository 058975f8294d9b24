"""Waiting for what happens on other threads."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(done: Callable[[], bool]) -> None:
    """A minute at most: a hang is a failure, a slow machine is not."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
