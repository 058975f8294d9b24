"""Waiting for something to become true, with what was last seen in the failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], accept: Callable[[T], object], within_s: float = 30.0) -> T:
    """Looks until the sight is accepted, and returns it."""
    deadline = time.monotonic() + within_s
    while True:
        sight = look()
        if accept(sight):
            return sight
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s; last seen: {str(sight)[:2000]}")
        time.sleep(0.1)
