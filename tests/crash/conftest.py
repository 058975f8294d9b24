"""What crash tests leave behind is collected at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _collect_garbage() -> Iterator[None]:
    """Brokers that died in mid-air leave cycles of tasks and tracebacks. If they are collected while pytest parses a
    module, CPython 3.11 loses count of its recursion (gh-106905) and the session ends with a SystemError."""
    yield
    gc.collect()
