"""What code takes from the process around it without asking a port: chance, and how long a computation has taken.

While a run lasts these are the seed's: ids that are made of random bytes, jitter, session ids; and a computation takes
no time, so that work in turns (`ottla.broker.turns`) is divided the same way each time.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random


@contextmanager
def seeded_surroundings(seed: int, now_s: Callable[[], float]) -> Iterator[None]:
    chance = Random(f"bytes {seed}")
    urandom, perf_counter, state = os.urandom, time.perf_counter, random.getstate()
    random.seed(f"random {seed}")
    os.urandom = chance.randbytes
    time.perf_counter = now_s
    try:
        yield
    finally:
        os.urandom, time.perf_counter = urandom, perf_counter
        random.setstate(state)
