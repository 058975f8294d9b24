"""Play simulated clusters.

python -m ottla.testing.simulation --seed 7             one run, told line by line
python -m ottla.testing.simulation --seeds 0..2000      many, with two processes: --jobs 2
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from ottla.testing.simulation.settings import settings_for
from ottla.testing.simulation.world import Outcome, play


class Summary(NamedTuple):
    seed: int
    violation: str | None
    errors: list[str]
    simulated_s: float
    events: int
    acks: int


def play_quietly(seed: int, given: dict[str, int | None]) -> Summary:
    gc.collect()  # brokers of the seed before, with their open files
    outcome = play(seed, settings_for(seed, **given), level=logging.ERROR)
    return Summary(
        seed,
        None if outcome.violation is None else str(outcome.violation),
        [f"{who}: {what}" for who, what in outcome.errors],
        outcome.simulated_s,
        outcome.events,
        outcome.acks,
    )


def play_aloud(seed: int, given: dict[str, int | None]) -> Outcome:
    settings = settings_for(seed, **given)
    print(f"seed {seed}: {settings}")
    outcome = play(seed, settings, output=sys.stdout, level=logging.INFO)
    verdict = "no violation" if outcome.violation is None else f"VIOLATION {outcome.violation}"
    print(f"{verdict}; {outcome.simulated_s:.1f} s simulated, {outcome.events} events, {outcome.acks} acknowledgements")
    for who, what in outcome.errors:
        print(f"unexpected, of {who}: {what}")
    return outcome


def play_many(seeds: Iterable[int], jobs: int, given: dict[str, int | None]) -> Iterator[Summary]:
    one = partial(play_quietly, given=given)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(one, seeds, chunksize=8)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.testing.simulation", description="Play simulated clusters.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="one run, told line by line")
    which.add_argument("--seeds", metavar="A..B", help="many runs, from A up to but not including B")
    parser.add_argument("--brokers", type=int, help="how many, instead of what the seed says")
    parser.add_argument("--replicas", type=int, help="of each partition")
    parser.add_argument("--steps", type=int, help="how many faults, instead of what the seed says")
    parser.add_argument("--jobs", type=int, default=1, help="processes for many runs")
    arguments = parser.parse_args()
    given = {"brokers": arguments.brokers, "replication_factor": arguments.replicas, "faults": arguments.steps}
    if arguments.seed is not None:
        outcome = play_aloud(arguments.seed, given)
        return 0 if outcome.violation is None else 1
    first, _, last = arguments.seeds.partition("..")
    began, count, failed = time.monotonic(), 0, 0
    for summary in play_many(range(int(first), int(last)), arguments.jobs, given):
        count += 1
        for error in summary.errors[:1]:
            print(f"seed {summary.seed}: unexpected: {error}", flush=True)
        if summary.violation is not None:
            failed += 1
            print(f"seed {summary.seed}: {summary.violation}", flush=True)
    took_s = time.monotonic() - began
    print(f"{count} seeds in {took_s:.0f} s, {took_s / max(count, 1) * 1000:.0f} ms each; {failed} with a violation")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
