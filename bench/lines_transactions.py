"""Transactions: how many a second, and exactly-once pipelines, driven by the Java client (v2) and librdkafka (classic).

A transaction is ten records of 100 bytes over four partitions, then a commit. A pipeline reads a topic in a group and
writes what each poll brought to another topic, with its offsets, in one transaction.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench import frames
from bench.contenders import Contender, arms
from bench.lines_clients import call
from bench.measure import Comparison, Values, cost, throughput
from tests.support.kafka_jars import class_path, java, kafka_libs

RECORDS_EACH = 10
RECORD_BYTES = 100
PARTITIONS = 4
# Compilers in the client and in Kafka learn while they run, and a commit is a chain of small requests: it takes long.
WARM_UP_S = 4.0
PIPE_RECORDS = 400_000
PIPE_UNCOUNTED = 100_000
_SOURCE = Path(__file__).parent / "java" / "TransactionLoad.java"


def _java_client(*arguments: object) -> list[str]:
    """Java compiles the one file and runs it."""
    libs = kafka_libs()
    assert libs is not None
    return [str(java()), "-Xmx512M", "-cp", class_path(libs), str(_SOURCE), *map(str, arguments)]


def _librdkafka_client(_kind: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.librdkafka_transactions", *map(str, arguments)]


CLIENTS = {"java": _java_client, "librdkafka": _librdkafka_client}


def _counted(command: list[str]) -> tuple[float, float]:
    """What the client did in a second, and all that it did."""
    counted, seconds, total = call(command).split()
    return int(counted) / float(seconds), float(total)


def commits(contender: Contender, client: str, producers: int, seconds: float) -> Values:
    with contender.topic(PARTITIONS) as topic:
        command = CLIENTS[client](
            "commit", contender.broker.bootstrap, topic.name, PARTITIONS, producers, RECORDS_EACH, RECORD_BYTES,
            min(WARM_UP_S, 2 * seconds), seconds,
        )  # fmt: skip
        (rate, total), cpu_s = contender.with_cpu(lambda: _counted(command))
    return {"commits": rate, "broker CPU": cpu_s / total * 1e3}


def commits_line(contenders: list[Contender], client: str, producers: int) -> Comparison:
    who = {"java": "Java, v2", "librdkafka": "librdkafka, classic"}[client]
    return Comparison(
        f"txn-{client}-{producers}",
        f"transactions of {RECORDS_EACH} records, {producers} producer{'s' * (producers > 1)} ({who})",
        [throughput("commits", "transactions/s", digits=0), cost("broker CPU", "s per 1,000")],
        arms(
            contenders,
            lambda each: commits(each, client, producers, each.scale.seconds),
            lambda each: commits(each, client, producers, each.scale.seconds / 2),
        ),
    )


def pipeline(contender: Contender, share: float) -> Values:
    records, uncounted = int(PIPE_RECORDS * share), int(PIPE_UNCOUNTED * share)
    with contender.topic(PARTITIONS) as source, contender.topic(PARTITIONS) as target:
        filled = _fill(contender, source.id, records)
        group = f"{target.name}-pipe"
        command = _java_client("pipe", contender.broker.bootstrap, source.name, target.name, group, filled, uncounted)
        (rate, total), cpu_s = contender.with_cpu(lambda: _counted(command))
    if total != filled:
        raise RuntimeError(f"moved {total:,.0f} records of {filled:,}")
    return {"moved": rate, "broker CPU": cpu_s / total * 1e6}


def _fill(contender: Contender, topic_id: bytes, records: int) -> int:
    """Batches of 100 to each partition in turn, as a producer that lingers sends them."""
    batch = frames.batch(100, RECORD_BYTES)
    path = frames.write(
        contender.scratch("fill"), (frames.produce(topic_id, index, batch) for index in range(PARTITIONS))
    )
    requests = records // 100
    load = contender.load("produce", frames=path, inflight=1, seconds=600, requests=requests)
    return load.total_requests * 100


def pipeline_line(contenders: list[Contender]) -> Comparison:
    return Comparison(
        "pipeline",
        "consume-transform-produce, a transaction a poll (Java, v2)",
        [throughput("moved", "records/s", digits=0), cost("broker CPU", "s per M records", digits=1)],
        arms(
            contenders,
            lambda each: pipeline(each, each.scale.client_share),
            lambda each: pipeline(each, 0.15),
        ),
    )
