"""A full search for garbage waits for a quiet moment, and then is made."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
    import gc, time
    from ottla.server import garbage

    now = {"wall": 1000.0, "cpu": 0.0}
    time.monotonic, time.process_time = lambda: now["wall"], lambda: now["cpu"]
    full = []

    def count(phase, info):
        if phase == "start" and info["generation"] == 2:
            full.append(phase)

    gc.callbacks.append(count)
    collector = garbage.GarbageCollector()
    assert len(full) == 1

    def after(seconds, cpu):
        now["wall"] += seconds
        now["cpu"] += cpu
        collector.check()
        return len(full)

    kept = [[n] for n in range(300_000)]  # Python's own rule would have made several of them
    assert len(full) == 1, full
    assert after(5, 0) == 1, "too early"
    assert after(700, 600) == 1, "busy"
    assert after(5, 0.1) == 2, "idle"
    assert after(700, 1) == 2, "nothing new since then"
    kept = [kept, [[n] for n in range(100_000)]]
    assert after(700, 1) == 3
    print("ok")
"""


def test_everything_is_searched_only_when_there_is_little_to_do() -> None:
    """In a process of its own: the collector is the process's, not ours to change."""
    outcome = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True)
    assert outcome.stdout == "ok\n", outcome.stderr
