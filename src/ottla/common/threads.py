"""The port behind which blocking work is done: real threads, or in the simulation whatever a seed makes of them.

Only those who hand work to an executor themselves need it. `loop.run_in_executor` is a port already: a simulated event
loop does that work as it sees fit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

# How many threads, and what they are called.
MakeThreads = Callable[[int, str], Executor]


def make_threads(count: int, name: str) -> Executor:
    """They are started when there is work."""
    return ThreadPoolExecutor(count, thread_name_prefix=name)
