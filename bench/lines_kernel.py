"""How fast fetched bytes become Arrow columns: the compiled kernel against its twin in plain Python, on one core."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType

from bench import frames
from bench.measure import Arm, Comparison, Values, throughput

RECORD_BYTES = 100
# A batch of the Java producer's default size; an answer of several of them.
BATCH_RECORDS = 16_384 // (RECORD_BYTES + 12)
ANSWER_BATCHES = 64
COMPILED_SECONDS, PURE_SECONDS = 1.0, 3.0


def decode_with(name: str, seconds: float) -> Values:
    """`decode` is the better one of those that this Python has."""
    return decode_for(importlib.import_module(f"ottla.kernel.{name}"), seconds)


def decode_for(module: ModuleType, seconds: float) -> Values:
    """CPU time, so that other work on the machine counts less."""
    answer = frames.batch(BATCH_RECORDS, RECORD_BYTES) * ANSWER_BATCHES
    records, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        decoder = module.Decoder(answer, 0, 2**62)
        while (columns := decoder.next_columns()) is not None:
            records += len(columns[0])
    return {"decoded": records / (time.process_time() - started) / 1e6}


def kernel_line() -> Comparison:
    def arm(label: str, name: str, seconds: float) -> Arm:
        module = importlib.import_module(f"ottla.kernel.{name}")
        measure: Callable[[], Values] = lambda: decode_for(module, seconds)  # noqa: E731
        return Arm(label, measure, lambda: decode_for(module, seconds / 10))

    return Comparison(
        "kernel",
        f"records of {RECORD_BYTES} B to Arrow, one core",
        [throughput("decoded", "M records/s", goal=20.0, digits=2)],
        [arm("plain Python", "decode_pure", PURE_SECONDS), arm("compiled", "_decode", COMPILED_SECONDS)],
        notes="the compiled kernel should reach 3 M records/s",
    )
