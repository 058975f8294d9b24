"""Play simulated clusters.

python -m ottla.testing.simulation --seed 7             one run, told line by line
python -m ottla.testing.simulation --seeds 0..2000      many; with two processes: --jobs 2
python -m ottla.testing.simulation --seeds 0..20000 --journal seeds.txt    the same command goes on where it was ended
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
from pathlib import Path
from typing import NamedTuple

from ottla.common.errors import OttlaError
from ottla.testing.simulation.journal import Journal, Played, code_in_use
from ottla.testing.simulation.settings import settings_for
from ottla.testing.simulation.world import Outcome, play

_PROGRESS_S = 30.0


class Summary(NamedTuple):
    seed: int
    # A promise that was broken, or else what a broker did not expect.
    wrong: str | None
    events: int
    acks: int
    took_s: float


class Totals:
    """Of all seeds, and of those of this session, what has been spent on them."""

    def __init__(self, asked: int, before: Iterable[Played]) -> None:
        self._asked = asked
        self._began_s = self._told_s = time.monotonic()
        self.count = self.failed = self._here = self._events = self._acks = 0
        self._before_s = 0.0
        for played in before:
            self.count += 1
            self.failed += played.wrong is not None
            self._before_s += played.took_s

    def add(self, summary: Summary) -> None:
        self.count += 1
        self._here += 1
        self.failed += summary.wrong is not None
        self._events += summary.events
        self._acks += summary.acks

    def tell_progress(self) -> None:
        if time.monotonic() - self._told_s >= _PROGRESS_S:
            self._told_s = time.monotonic()
            print(f"{self.count} of {self._asked} seeds, {self.failed} with a violation", file=sys.stderr, flush=True)

    def text(self) -> str:
        here_s = time.monotonic() - self._began_s
        parts = [
            f"{self.count} seeds in {self._before_s + here_s:.0f} s",
            f"{here_s / max(self._here, 1) * 1000:.0f} ms each",
            f"{self._events / max(here_s, 0.001):.0f} events/s",
            f"{self._acks} acknowledgements",
        ]
        return f"{', '.join(parts)}; {self.failed} with a violation"


def play_quietly(seed: int, given: dict[str, int | None]) -> Summary:
    began_s = time.monotonic()
    outcome = play(seed, settings_for(seed, **given), level=logging.ERROR)
    gc.collect()  # brokers that were killed, with their open files
    wrong = None
    if outcome.violation is not None:
        wrong = str(outcome.violation)
    elif outcome.errors:
        who, what = outcome.errors[0]
        wrong = f"unexpected, of {who}: {what}"
    return Summary(seed, wrong, outcome.events, outcome.acks, time.monotonic() - began_s)


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
        gc.freeze()  # what is there now stays: the collections between two seeds need not look at it
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=gc.freeze) as processes:
        yield from processes.map(one, seeds, chunksize=8)


def search(seeds: range, jobs: int, given: dict[str, int | None], journal: Journal | None) -> int:
    known = {} if journal is None else {seed: played for seed, played in journal.played.items() if seed in seeds}
    for seed, played in known.items():
        if played.wrong is not None:
            print(f"seed {seed}: {played.wrong}", flush=True)
    totals = Totals(len(seeds), known.values())
    for summary in play_many([seed for seed in seeds if seed not in known], jobs, given):
        totals.add(summary)
        if summary.wrong is not None:
            print(f"seed {summary.seed}: {summary.wrong}", flush=True)
        if journal is not None:
            journal.note(summary.seed, Played(summary.took_s, summary.wrong))
        totals.tell_progress()
    print(totals.text())
    return 0 if totals.failed == 0 else 1


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.testing.simulation", description="Play simulated clusters.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="one run, told line by line")
    which.add_argument("--seeds", type=_seeds, metavar="A..B", help="many runs, from A up to but not including B")
    parser.add_argument("--brokers", type=int, help="how many, instead of what the seed says")
    parser.add_argument("--replicas", type=int, help="of each partition")
    parser.add_argument("--steps", type=int, help="how many faults, instead of what the seed says")
    damage_help = "disks also lose parts of files that were synced"
    parser.add_argument("--damage", action="store_const", const=1, help=damage_help)
    deletes_help = "records are deleted meanwhile, and a topic is made again and again"
    parser.add_argument("--deletes", action="store_const", const=1, help=deletes_help)
    parser.add_argument("--jobs", type=int, default=1, help="processes for many runs")
    journal_help = "note there what came of each seed, and play only those that it lacks"
    parser.add_argument("--journal", type=Path, metavar="FILE", help=journal_help)
    arguments = parser.parse_args()
    given = {"brokers": arguments.brokers, "replication_factor": arguments.replicas, "faults": arguments.steps}
    given |= {"damages": arguments.damage, "deletes": arguments.deletes}
    if arguments.seed is not None:
        outcome = play_aloud(arguments.seed, given)
        return 0 if outcome.violation is None else 1
    if arguments.journal is None:
        return search(arguments.seeds, arguments.jobs, given, None)
    what = " ".join([code_in_use(), *(f"{name}={value}" for name, value in given.items() if value is not None)])
    try:
        with Journal(arguments.journal, what) as journal:
            return search(arguments.seeds, arguments.jobs, given, journal)
    except OttlaError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
