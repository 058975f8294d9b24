"""Lines about the process itself: how soon it serves, and what it holds in memory idle and after load."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path

from bench.contenders import Contender, Kind, arms, make_broker
from bench.lines_wire import bulk, single_produce
from bench.measure import Arm, Comparison, Values, cost
from tests.support.process import answers_api_versions

IDLE_AFTER_S = 1.0
MB = 1e6


def start_up(kind: Kind, folder: Path) -> Values:
    """From exec to the first ApiVersions answered, on empty data (Kafka's is formatted before the clock starts)."""
    broker = make_broker(kind, folder)
    try:
        before = time.perf_counter()
        broker.start()
        while not answers_api_versions(broker.host, broker.port):
            time.sleep(0.002)
        ready_s = time.perf_counter() - before
        time.sleep(IDLE_AFTER_S)
        return {"ready": ready_s, "idle memory": broker.rss_bytes() / MB}
    finally:
        broker.close()
        shutil.rmtree(folder, ignore_errors=True)


def start_up_line(kinds: list[tuple[str, Kind]], folder: Path) -> Comparison:
    """`kinds` are (label, kind of broker)."""
    return Comparison(
        "start",
        "start-up",
        [cost("ready", "s after exec", goal=8.0, digits=3), cost("idle memory", "MB", goal=8.0, digits=0)],
        [Arm(label, partial(start_up, kind, folder / "start")) for label, kind in kinds],
    )


def memory_after_load(contender: Contender) -> Values:
    """Resident memory after whatever has run so far, and at least 64 busy connections and a bulk load both ways."""
    single_produce(contender, 64)
    bulk(contender, 1_000, contender.scale.bulk_bytes)
    return {"after load": contender.broker.rss_bytes() / MB}


def memory_line(contenders: list[Contender]) -> Comparison:
    return Comparison(
        "memory",
        "memory",
        [cost("after load", "MB", goal=8.0, digits=0)],
        arms(contenders, memory_after_load, lambda each: None),
    )
