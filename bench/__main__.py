"""Ottla beside Apache Kafka 4.3.1 on this machine: `make bench`, or `python -m bench [options]`.

Both brokers run at the same time with default settings (Kafka: KRaft, one node, 1 GB heap) on their own temporary
folders; they are measured in turn, so one is idle while the other works. Every line is measured in several rounds,
A-B then B-A. The table has medians, best rounds and ratios; the JSON of the run goes to `bench/results/`.

The folder for data is `TMPDIR`: take care that it is on the disk that you want to measure, not in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from bench import (
    lines_clients,
    lines_kernel,
    lines_process,
    lines_spark,
    lines_spark_sink,
    lines_steady,
    lines_transactions,
    lines_wire,
    loadgen,
    measure,
    report,
)
from bench.contenders import FULL, QUICK, Contender, Scale, make_broker
from bench.measure import Comparison, Result
from tests.support.kafka_jars import REPO_ROOT, kafka_libs, why_no_kafka

CONNECTIONS = (1, 16, 64)
RECORD_BYTES = (100, 1_000, 10_000)
RATES = (100, 1_000, 5_000, 20_000)
TRANSACTIONAL_PRODUCERS = (1, 8)


class Bench:
    """Starts a broker when a line first needs it; ends all of them, and their folders, at the end."""

    def __init__(self, kinds: list[tuple[str, str]], scale: Scale, stack: contextlib.ExitStack) -> None:
        self.kinds = kinds  # (label, kind), baseline first
        self.scale = scale
        self._stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-bench-")))
        self._running: dict[str, Contender] = {}

    def contender(self, label: str, kind: str, properties: dict[str, str] | None = None) -> Contender:
        if label not in self._running:
            broker = make_broker(kind, self.folder / label, properties)
            self._stack.enter_context(broker)
            self._running[label] = Contender(label, broker, self.scale)
            warm_up(self._running[label])
        return self._running[label]

    def all(self) -> list[Contender]:
        return [self.contender(label, kind) for label, kind in self.kinds]

    def subject(self, purpose: str = "", properties: dict[str, str] | None = None) -> Contender:
        label, kind = self.kinds[-1]
        return self.contender(f"{label}-{purpose}" if purpose else label, kind, properties)


def warm_up(contender: Contender) -> None:
    """Work for a compiler that learns while it runs: Kafka's first seconds are no measure of it."""
    lines_wire.single_produce(contender, 64)
    lines_wire.single_produce(contender, 1)
    lines_wire.bulk(contender, 1_000, contender.scale.bulk_bytes // 3)


def catalogue(bench: Bench) -> dict[str, Callable[[], Comparison]]:
    """Every line by name, in the order in which they run."""
    lines: dict[str, Callable[[], Comparison]] = {}

    def add(name: str, make: Callable[[list[Contender], int], Comparison], values: Iterable[int]) -> None:
        for value in values:
            lines[f"{name}-{value}"] = partial(_versus, bench, make, value)

    lines["start"] = lambda: lines_process.start_up_line(bench.kinds, bench.folder)
    add("sync", lines_wire.single_produce_line, CONNECTIONS)
    add("pinned", lines_wire.pinned_produce_line, CONNECTIONS[1:2])
    add("bulk", lines_wire.bulk_line, RECORD_BYTES)
    add("java", lines_clients.java_line, RECORD_BYTES if kafka_libs() else ())
    add("librdkafka", lines_clients.librdkafka_line, RECORD_BYTES)
    add("e2e", lines_wire.end_to_end_line, RATES)
    _add_transactions(lines, bench)
    lines["memory"] = lambda: lines_process.memory_line(bench.all())
    lines["idle-connections"] = lambda: lines_steady.idle_connections_line(bench.subject("flat"))
    lines["partitions"] = lambda: lines_steady.partitions_line(bench.subject("flat"), bench.subject("full"))
    lines["spread"] = lambda: lines_steady.spread_line(bench.subject("flat"))
    lines["compaction"] = lambda: lines_steady.compaction_line(
        bench.subject("compaction", lines_steady.COMPACTION_SETTINGS)
    )
    lines["kernel"] = lines_kernel.kernel_line
    lines["spark-batch"] = lambda: lines_spark.batch_line(bench.subject())
    lines["spark-stream"] = lambda: lines_spark.stream_line(bench.subject())
    lines["spark-sink"] = lambda: lines_spark_sink.sink_line(bench.subject())
    for rate in lines_spark_sink.RATES:
        lines[f"spark-latency-{rate}"] = partial(_spark_latency, bench, rate)
        lines[f"spark-latency-{rate}-same"] = partial(_spark_latency, bench, rate, has_same_setting=True)
    return lines


def _add_transactions(lines: dict[str, Callable[[], Comparison]], bench: Bench) -> None:
    for client in ("java", "librdkafka") if kafka_libs() else ("librdkafka",):
        for producers in TRANSACTIONAL_PRODUCERS:
            lines[f"txn-{client}-{producers}"] = lambda client=client, producers=producers: (  # type: ignore[misc]
                lines_transactions.commits_line(bench.all(), client, producers)
            )
    if kafka_libs():
        lines["pipeline"] = lambda: lines_transactions.pipeline_line(bench.all())


def _spark_latency(bench: Bench, per_second: int, **more: bool) -> Comparison:
    return lines_spark_sink.latency_line(bench.subject(), per_second, **more)


def _versus(bench: Bench, make: Callable[[list[Contender], int], Comparison], value: int) -> Comparison:
    return make(bench.all(), value)


def choose_kinds(options: argparse.Namespace) -> list[tuple[str, str]]:
    if options.noise:
        return [(f"{options.noise}-a", options.noise), (f"{options.noise}-b", options.noise)]
    if options.no_kafka:
        return [("ottla", "ottla")]
    if kafka_libs() is None:
        subprocess.run([sys.executable, str(REPO_ROOT / "tools" / "fetch_kafka.py")], stdout=subprocess.DEVNULL)
    reason = why_no_kafka()
    if reason is not None:
        print(f"Apache Kafka cannot be had ({reason}): Ottla is measured alone.")
        return [("ottla", "ottla")]
    return [("kafka", "kafka"), ("ottla", "ottla")]


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
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--no-kafka", action="store_true", help="measure Ottla alone")
    parser.add_argument(
        "--noise", choices=["kafka", "ottla"], help="a broker against itself: the noise of this machine"
    )
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown too")
    return parser.parse_args()


def main() -> int:
    options = parse()
    if options.rounds < 1:
        print("--rounds wants a number above 0", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        kinds = [("ottla", "ottla")] if options.list else choose_kinds(options)
        bench = Bench(kinds, QUICK if options.quick else FULL, stack)
        names = list(catalogue(bench))
        unknown = [one for one in options.only if not fnmatch.filter(names, one)]
        if options.list or unknown:
            problem = f"No line is called {unknown[0]}. " if unknown else ""
            print(f"{problem}The lines are: {', '.join(names)}.")
            return 2 if unknown else 0
        print(f"load generator: {loadgen.describe()}; data in {bench.folder}", flush=True)
        results = run_lines(bench, options.only, options.rounds)
    print("\n" + report.text(results))
    if options.markdown:
        print("\n" + report.markdown(results))
    print(f"\nwritten to {report.write_json(results, vars(options))}")
    return 1 if any(result.failure for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
