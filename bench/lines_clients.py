"""Lines driven by clients that people use: Kafka's own performance tools (Java) and librdkafka.

Both send with their usual batching (16 KB in Java, 1 MB in librdkafka) and read the same topic back.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bench.contenders import Contender, arms
from bench.measure import Comparison, Values, cost, throughput
from tests.support.kafka_jars import class_path, java, kafka_libs

RECORDS = {100: 1_500_000, 1_000: 300_000, 10_000: 40_000}
REPO_ROOT = Path(__file__).resolve().parent.parent
CLIENT_SECONDS_MAX = 300


def call(command: list[str]) -> str:
    done = subprocess.run(command, cwd=REPO_ROOT, capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"a client failed: {_reason(done.stderr or done.stdout)}")
    return done.stdout


def _reason(told: str) -> str:
    """Java names the exception before the stack, Python after it."""
    lines = [line.strip() for line in told.strip().splitlines() if line.strip()]
    raised = [line for line in lines if line.startswith(("Exception in thread", "Caused by"))]
    return " / ".join(raised) or "".join(lines[-1:])


def _kafka_tool(name: str, *arguments: str) -> str:
    libs = kafka_libs()
    assert libs is not None
    return call([str(java()), "-Xmx512M", "-cp", class_path(libs), f"org.apache.kafka.tools.{name}", *arguments])


def _java_produce(bootstrap: str, topic: str, records: int, record_bytes: int) -> float:
    """MB/s, as ProducerPerformance says in its last line."""
    told = _kafka_tool(
        *("ProducerPerformance", "--bootstrap-server", bootstrap, "--topic", topic, "--throughput", "-1"),
        *("--num-records", str(records), "--record-size", str(record_bytes), "--command-property", "acks=all"),
    )
    sent = re.findall(r"^(\d+) records sent, ([\d.]+) records/sec", told, re.MULTILINE)
    if not sent or int(sent[-1][0]) != records:
        raise RuntimeError(f"ProducerPerformance did not send all: {told[-300:]}")
    return float(sent[-1][1]) * record_bytes / 1e6


def _java_consume(bootstrap: str, topic: str, records: int) -> float:
    """MB/s while fetching, as ConsumerPerformance says; joining the group is not counted."""
    told = _kafka_tool(
        *("ConsumerPerformance", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)),
        "--hide-header",
    )
    fields = told.strip().splitlines()[-1].split(",")
    if int(fields[4]) < records:
        raise RuntimeError(f"ConsumerPerformance did not see all: {told[-300:]}")
    return float(fields[8]) * 1.048576


def _librdkafka(role: str, contender: Contender, topic: str, records: int, record_bytes: int) -> float:
    client = [sys.executable, "-m", "bench.librdkafka_client", role, contender.broker.bootstrap, topic]
    return records * record_bytes / 1e6 / float(call([*client, str(records), str(record_bytes)]))


def java_round(contender: Contender, record_bytes: int, share: float) -> Values:
    records, bootstrap = int(RECORDS[record_bytes] * share), contender.broker.bootstrap
    with contender.topic() as topic:
        produced, produce_cpu_s = contender.with_cpu(
            lambda: _java_produce(bootstrap, topic.name, records, record_bytes)
        )
        consumed, consume_cpu_s = contender.with_cpu(lambda: _java_consume(bootstrap, topic.name, records))
    return _values(produced, consumed, produce_cpu_s, consume_cpu_s, records * record_bytes)


def librdkafka_round(contender: Contender, record_bytes: int, share: float) -> Values:
    records = int(RECORDS[record_bytes] * share)
    with contender.topic() as topic:
        produced, produce_cpu_s = contender.with_cpu(
            lambda: _librdkafka("produce", contender, topic.name, records, record_bytes)
        )
        consumed, consume_cpu_s = contender.with_cpu(
            lambda: _librdkafka("consume", contender, topic.name, records, record_bytes)
        )
    return _values(produced, consumed, produce_cpu_s, consume_cpu_s, records * record_bytes)


def _values(produced: float, consumed: float, produce_cpu_s: float, consume_cpu_s: float, volume: int) -> Values:
    return {
        "produce": produced,
        "consume": consumed,
        "broker CPU produce": produce_cpu_s / volume * 1e9,
        "broker CPU consume": consume_cpu_s / volume * 1e9,
    }


METRICS = [
    throughput("produce", "MB/s"),
    throughput("consume", "MB/s"),
    cost("broker CPU produce", "s per GB"),
    cost("broker CPU consume", "s per GB"),
]


def java_line(contenders: list[Contender], record_bytes: int) -> Comparison:
    return Comparison(
        f"java-{record_bytes}",
        f"Kafka's perf tools (Java), {record_bytes:,} B",
        METRICS,
        arms(
            contenders,
            lambda each: java_round(each, record_bytes, each.scale.client_share),
            lambda each: java_round(each, record_bytes, 0.1),
        ),
    )


def librdkafka_line(contenders: list[Contender], record_bytes: int) -> Comparison:
    return Comparison(
        f"librdkafka-{record_bytes}",
        f"librdkafka, {record_bytes:,} B",
        METRICS,
        arms(
            contenders,
            lambda each: librdkafka_round(each, record_bytes, each.scale.client_share),
            lambda each: librdkafka_round(each, record_bytes, 0.2),
        ),
    )
