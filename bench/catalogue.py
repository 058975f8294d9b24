"""Every line of the benchmark by name, and the brokers that they run on.

Between Ottla and Apache Kafka (or two brokers of one kind) each line has its reason. Between two builds of Ottla there
are those that one broker is compared with another on, and the kernel and Spark of each build in its own Python.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench import (
    lines_backlog,
    lines_clients,
    lines_cluster,
    lines_connect,
    lines_connect_databases,
    lines_console,
    lines_kernel,
    lines_metrics,
    lines_neighbour,
    lines_process,
    lines_registry,
    lines_registry_values,
    lines_security,
    lines_spark,
    lines_spark_sink,
    lines_spark_table,
    lines_steady,
    lines_streams,
    lines_trace,
    lines_transactions,
    lines_wire,
)
from bench.builds import Build
from bench.contenders import Contender, Kind, Scale, make_broker
from bench.in_build import Inside
from bench.lines_cluster import ClusterContender
from bench.measure import Arm, Comparison, Metric, Values, cost, throughput
from bench.streams_programs import NATIVE_COUNT, WINDOWED_COUNT, WORD_COUNT
from tests.support.kafka_jars import kafka_libs
from tests.support.process import free_ports
from tests.support.trio import KafkaTrio, OttlaTrio

CONNECTIONS = (1, 16, 64)
RECORD_BYTES = (100, 1_000, 10_000)
RATES = (100, 1_000, 5_000, 20_000)
TRANSACTIONAL_PRODUCERS = (1, 8)
Lines = dict[str, Callable[[], Comparison]]
T = TypeVar("T")

# What two builds are compared on unless lines are named: a little of everything, in less than twenty minutes.
AGAINST = (
    "start", "sync-*", "bulk-100", "bulk-1000", "java-1000", "librdkafka-1000", "e2e-1000", "txn-java-1",
    "txn-librdkafka-*", "pipeline", "memory", "kernel",
)  # fmt: skip


class Bench:
    """Starts a broker when a line first needs it; ends all of them, and their folders, at the end."""

    def __init__(self, kinds: list[tuple[str, Kind]], scale: Scale, stack: contextlib.ExitStack) -> None:
        self.kinds = kinds  # (label, kind), baseline first
        self.scale = scale
        self._stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-bench-")))
        self._running: dict[str, Contender] = {}
        self._inside: dict[str, Inside] = {}
        self._clusters: dict[str, ClusterContender] = {}

    def contender(self, label: str, kind: Kind, properties: dict[str, str] | None = None) -> Contender:
        if label not in self._running:
            broker = make_broker(kind, self.folder / label, properties)
            self._stack.enter_context(broker)
            self._running[label] = Contender(label, broker, self.scale)
            warm_up(self._running[label])
        return self._running[label]

    def all(self) -> list[Contender]:
        return [self.contender(label, kind) for label, kind in self.kinds]

    def clusters(self) -> list[ClusterContender]:
        """Three brokers of each kind, started when a line first needs them."""
        for label, kind in self.kinds:
            if label not in self._clusters:
                trio = (KafkaTrio if kind == "kafka" else OttlaTrio)(self.folder / f"{label}-cluster")
                self._stack.enter_context(trio)
                self._clusters[label] = ClusterContender(label, trio, self.scale)
        return [self._clusters[label] for label, _ in self.kinds]

    def with_tls(self) -> list[lines_security.TlsContender]:
        """Brokers of their own with a listener for TLS."""
        made = []
        for label, kind in self.kinds:
            one = lines_security.TlsContender.make(label, kind, self.folder / f"{label}-tls", self.scale)
            self._stack.enter_context(one.broker)
            made.append(one)
        return made

    def subject(self, purpose: str = "", properties: dict[str, str] | None = None) -> Contender:
        label, kind = self.kinds[-1]
        return self.contender(f"{label}-{purpose}" if purpose else label, kind, properties)

    def enter(self, context: contextlib.AbstractContextManager[T]) -> T:
        """What a line needs beside the brokers, until all lines are done."""
        return self._stack.enter_context(context)

    def inside(self, label: str, build: Build) -> Inside:
        if label not in self._inside:
            started = Inside(build, self.folder / f"{label}-inside.log")
            self._inside[label] = self._stack.enter_context(started)
        return self._inside[label]


def warm_up(contender: Contender) -> None:
    """Work for a compiler that learns while it runs: Kafka's first seconds are no measure of it."""
    lines_wire.single_produce(contender, 64)
    lines_wire.single_produce(contender, 1)
    lines_wire.bulk(contender, 1_000, contender.scale.bulk_bytes // 3)


def catalogue(bench: Bench) -> Lines:
    """In the order in which they run."""
    lines = _between_brokers(bench)
    if isinstance(bench.kinds[0][1], Build):
        return lines | _inside_builds(bench)
    return lines | _ottla_alone(bench) | _between_clusters(bench) | _streams(bench)


def _between_brokers(bench: Bench) -> Lines:
    lines: Lines = {}

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
    lines["neighbour"] = lambda: lines_neighbour.neighbour_line(bench.all())
    if not isinstance(bench.kinds[0][1], Build):
        lines["tls"] = lambda: lines_security.tls_line(bench.with_tls())
    lines["memory"] = lambda: lines_process.memory_line(bench.all())
    return lines


def _between_clusters(bench: Bench) -> Lines:
    lines: Lines = {}
    for connections in lines_cluster.CONNECTIONS:
        lines[f"cluster-sync-{connections}"] = partial(_cluster, bench, lines_cluster.single_produce_line, connections)
    lines["cluster-bulk-1000"] = lambda: lines_cluster.bulk_line(bench.clusters())
    for fault in ("kill", "pause"):
        lines[f"cluster-{fault}"] = partial(_cluster, bench, lines_cluster.failover_line, fault)
    for count in lines_cluster.PARTITION_COUNTS:
        lines[f"cluster-partitions-{count}"] = partial(_cluster, bench, lines_cluster.many_partitions_line, count)
    return lines


def _cluster(bench: Bench, make: Callable[..., Comparison], value: int | str) -> Comparison:
    return make(bench.clusters(), value)


def _ottla_alone(bench: Bench) -> Lines:
    """Against itself under other conditions, its kernel against the twin, and Spark's connector on its broker."""
    lines: Lines = {
        "idle-connections": lambda: lines_steady.idle_connections_line(bench.subject("flat")),
        "partitions": lambda: lines_steady.partitions_line(bench.subject("flat"), bench.subject("full")),
        "spread": lambda: lines_steady.spread_line(bench.subject("flat")),
        "compaction": lambda: lines_steady.compaction_line(
            bench.subject("compaction", lines_steady.COMPACTION_SETTINGS)
        ),
        "authorizer": lambda: lines_security.authorizer_line(
            bench.subject("flat"), bench.subject("guarded", lines_security.AUTHORIZER)
        ),
        "metrics-overhead": lambda: _metrics_overhead(bench),
        "kernel": lines_kernel.kernel_line,
        "spark-batch": lambda: lines_spark.batch_line(bench.subject()),
        "spark-stream": lambda: lines_spark.stream_line(bench.subject()),
        "spark-sink": lambda: lines_spark_sink.sink_line(bench.subject()),
        "spark-sink-lineage": lambda: lines_trace.lineage_line(bench.subject()),
        "trace-search": lambda: lines_trace.search_line(bench.subject()),
        "table-size": lambda: lines_spark_table.size_line(bench.subject()),
        "table-whole": lambda: lines_spark_table.whole_line(bench.subject()),
        "backlog": lambda: lines_backlog.backlog_line(bench.subject()),
        "registry": lambda: lines_registry.instances_line(bench.subject(), bench.enter),
        "avro-decode": lines_registry.decode_line,
        "protobuf-values": lines_registry_values.protobuf_line,
        "json-values": lines_registry_values.json_line,
        "console-search": lambda: lines_console.search_line(bench.subject()),
        "console-paint": lambda: lines_console.paint_line(bench.subject("flat"), bench.subject("crowded"), bench.enter),
        "spark-avro": lambda: lines_registry.spark_line(bench.subject(), bench.enter),
        "connect-files": lambda: lines_connect.files_line(bench.subject(), bench.enter),
        "connect-files-once": lambda: lines_connect.files_line(bench.subject(), bench.enter, kafka_once=True),
        "postgres-snapshot": lambda: lines_connect_databases.snapshot_line(bench.enter),
        "postgres-changes": lambda: lines_connect_databases.changes_line(bench.enter),
        "postgres-upserts": lambda: lines_connect_databases.upserts_line(bench.enter),
    }
    for rate in lines_spark_sink.RATES:
        lines[f"spark-latency-{rate}"] = partial(_spark_latency, bench, rate)
        lines[f"spark-latency-{rate}-same"] = partial(_spark_latency, bench, rate, has_same_setting=True)
    return lines


def _metrics_overhead(bench: Bench) -> Comparison:
    (port,) = free_ports(1)
    measured = bench.subject("metrics", lines_metrics.settings(port))
    return lines_metrics.overhead_line(bench.subject("flat"), measured, port)


def _streams(bench: Bench) -> Lines:
    """Kafka Streams and quix-streams on the broker that Ottla Streams runs on."""
    made: dict[str, Callable[[Contender, Callable[..., object]], Comparison]] = {
        "streams-native": partial(lines_streams.kafka_line, program=NATIVE_COUNT),
        "streams-state": lines_streams.state_line,
        "streams-state-kafka": partial(lines_streams.state_line, of_kafka=True),
    }
    for program in (WORD_COUNT, WINDOWED_COUNT):
        made[f"streams-{program.name}"] = partial(lines_streams.kafka_line, program=program)
        made[f"streams-{program.name}-each"] = partial(lines_streams.kafka_line, program=program, emits_each=True)
        made[f"streams-quix-{program.name}"] = partial(lines_streams.quix_line, program=program)
    for rate in lines_streams.LATENCY_RATES:
        made[f"streams-latency-{rate}"] = partial(lines_streams.latency_line, per_second=rate)
    return {name: partial(_streams_line, bench, make) for name, make in made.items()}


def _streams_line(bench: Bench, make: Callable[[Contender, Callable[..., object]], Comparison]) -> Comparison:
    return make(bench.subject(), bench.enter)


def _inside_builds(bench: Bench) -> Lines:
    titles: Mapping[str, tuple[str, list[Metric]]] = {
        "kernel": ("records of 100 B to Arrow, one core", [throughput("decoded", "M records/s", digits=2)]),
        "spark-batch": ("Spark reads 100 B records, batch", [throughput("read", "k rows/s", digits=0)]),
        "spark-stream": ("Spark reads 100 B records, streaming", [throughput("read", "k rows/s", digits=0)]),
        "spark-sink": ("Spark copies 100 B records, exactly once", [throughput("written", "k rows/s", digits=0)]),
        "spark-latency": (
            f"Spark copies {lines_spark_sink.RATES[1]:,} records/s, record in to record out",
            [cost("p50", "ms", digits=0), cost("p99", "ms", digits=0)],
        ),
    }
    return {name: partial(_inside_line, bench, name, *facts) for name, facts in titles.items()}


def _inside_line(bench: Bench, name: str, title: str, metrics: list[Metric]) -> Comparison:
    def arm(label: str, build: Kind) -> Arm:
        assert isinstance(build, Build)
        contender = None if name == "kernel" else bench.contender(label, build)
        measure: Callable[[], Values] = partial(bench.inside(label, build).measure, name, contender)
        return lines_spark.warmed_arm(label, measure)

    return Comparison(name, title, metrics, [arm(label, build) for label, build in bench.kinds])


def _add_transactions(lines: Lines, bench: Bench) -> None:
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
