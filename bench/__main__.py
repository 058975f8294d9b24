"""Ottla beside Apache Kafka 4.3.1 on this machine: `make bench`, or `python -m bench [options]`.

Both brokers run at the same time with default settings (Kafka: KRaft, one node, 1 GB heap) on their own temporary
folders; they are measured in turn, so one is idle while the other works. Every line is measured in several rounds,
A-B then B-A. The table has medians, best rounds and ratios; the JSON of the run goes to `bench/results/`.

`make bench-against REV=...` measures two revisions of Ottla in the same way, and says which figures differ by more than
noise (`builds.py` makes them, `verdict.py` has the rule).

The folder for data is `TMPDIR`: take care that it is on the disk that you want to measure, not in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import subprocess
import sys

from bench import builds, loadgen, measure, report, verdict
from bench.catalogue import AGAINST, Bench, catalogue
from bench.contenders import FULL, QUICK, SHORT, Kind, Scale
from bench.measure import Result
from tests.support.kafka_jars import REPO_ROOT, kafka_libs, why_no_kafka

ROUNDS, ROUNDS_AGAINST, ROUNDS_AGAINST_QUICK = 3, 8, 6


def choose_kinds(options: argparse.Namespace) -> list[tuple[str, Kind]]:
    if options.list:
        return [("ottla", "ottla")]
    if options.against is not None:
        return choose_builds(options)
    if options.noise:
        return [(f"{options.noise}-a", options.noise), (f"{options.noise}-b", options.noise)]
    if options.no_kafka:
        return [("ottla", "ottla")]
    if kafka_libs() is None:
        subprocess.run([sys.executable, str(REPO_ROOT / "tools" / "fetch_jars.py"), "kafka"], stdout=subprocess.DEVNULL)
    reason = why_no_kafka()
    if reason is not None:
        print(f"Apache Kafka cannot be had ({reason}): Ottla is measured alone.")
        return [("ottla", "ottla")]
    return [("kafka", "kafka"), ("ottla", "ottla")]


def choose_builds(options: argparse.Namespace) -> list[tuple[str, Kind]]:
    # Half a gigabyte for each build: only where a line wants it.
    extras = ("spark",) if any("spark" in one or one == "*" for one in options.only) else ()
    baseline, subject = builds.build(options.against, extras), builds.build(options.subject, extras)
    builds.forget_old_builds()
    first = baseline.label if baseline.label != subject.label else f"{baseline.label} again"
    return [(first, baseline), (subject.label, subject)]


def choose_scale(options: argparse.Namespace) -> Scale:
    return QUICK if options.quick else SHORT if options.against is not None else FULL


def choose_rounds(options: argparse.Namespace) -> int:
    if options.rounds is not None:
        return int(options.rounds)
    if options.against is None:
        return ROUNDS
    return ROUNDS_AGAINST_QUICK if options.quick else ROUNDS_AGAINST


def run_lines(bench: Bench, patterns: list[str], rounds: int) -> list[Result]:
    results = []
    for name, make in catalogue(bench).items():
        if patterns and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        print(f"{name}", flush=True)
        try:
            results.append(measure.run(make(), rounds, lambda line: print(line, flush=True)))
        except (RuntimeError, OSError, ImportError, subprocess.SubprocessError) as error:
            print(f"  FAILED: {error}", flush=True)
            results.append(Result(name, name, [], failure=str(error)))
    return results


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Ottla beside Apache Kafka 4.3.1.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a line, or a pattern: `bulk-*`")
    parser.add_argument("--list", action="store_true", help="the names of the lines")
    parser.add_argument("--quick", action="store_true", help="short rounds, for a first look")
    parser.add_argument("--rounds", type=int, metavar="N", help="3; between two revisions 8, and 6 with --quick")
    parser.add_argument("--no-kafka", action="store_true", help="measure Ottla alone")
    parser.add_argument(
        "--noise", choices=["kafka", "ottla"], help="a broker against itself: the noise of this machine"
    )
    parser.add_argument("--against", metavar="REV", help="compare Ottla as it lies here with a revision of it")
    parser.add_argument("--subject", default=builds.HERE, metavar="REV", help="compare this revision, not what is here")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown too")
    return parser.parse_args()


def main() -> int:
    options = parse()
    rounds = choose_rounds(options)
    if rounds < 1:
        print("--rounds wants a number above 0", file=sys.stderr)
        return 2
    again: dict[str, Result] = {}
    with contextlib.ExitStack() as stack:
        try:
            kinds = choose_kinds(options)
        except builds.CannotBuild as error:
            print(error, file=sys.stderr)
            return 2
        bench = Bench(kinds, choose_scale(options), stack)
        names = list(catalogue(bench))
        unknown = [one for one in options.only if not fnmatch.filter(names, one)]
        if options.list or unknown:
            problem = f"No line is called {unknown[0]}. " if unknown else ""
            print(f"{problem}The lines are: {', '.join(names)}.")
            return 2 if unknown else 0
        print(f"load generator: {loadgen.describe()}; data in {bench.folder}", flush=True)
        if options.against is None:
            results = run_lines(bench, options.only, rounds)
        else:
            results = run_lines(bench, options.only or list(AGAINST), rounds)
            doubtful = [one.name for one in results if verdict.is_worse(one)]
            if doubtful:
                print("once more, what came out worse:", flush=True)
                again = {one.name: one for one in run_lines(bench, doubtful, rounds)}
    print("\n" + (report.text(results) if options.against is None else verdict.text(results, again)))
    if options.markdown:
        print("\n" + report.markdown(results))
    print(f"\nwritten to {report.write_json([*results, *again.values()], vars(options))}")
    return 1 if any(result.failure for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
