"""Kafka's own dump tool reads what we write, and finds nothing wrong with it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ottla.records.compression import Codec
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS, append, batch, open_log
from tests.storage.markers import marker
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = pytest.mark.jvm


def dump(*paths: Path) -> str:
    libs = require_kafka_libs()
    command = [*quick_java(), "-cp", class_path(libs), "org.apache.kafka.tools.DumpLogSegments"]
    command += ["--files", ",".join(map(str, paths)), "--deep-iteration", "--print-data-log", "--index-sanity-check"]
    if not any(path.suffix == ".index" for path in paths):
        command.remove("--index-sanity-check")
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    directory = tmp_path_factory.mktemp("orders-0")
    log = open_log(directory, LogConfig(segment_bytes=6000, index_interval_bytes=300))
    for n in range(60):
        codec = list(Codec)[n % 5]
        data = batch(b"first %d" % n, b"second", timestamp=NOW_MS + n, codec=codec)
        log.append(data, leader_epoch=n // 20, now_ms=NOW_MS)
    for n in range(3):
        producer = {"producer_id": 900 + n, "producer_epoch": 1}
        for i in range(3):
            append(log, b"txn", base_sequence=i, attributes=0x10, **producer)
        if n < 2:
            end = marker(commit=n == 0, **producer)
            log.append(end, leader_epoch=3, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.close()
    return log


def test_batches_and_records(log: Log) -> None:
    text = dump(*sorted(log.dir.glob("*.log")))
    assert sorted(map(int, re.findall(r"^baseOffset: (\d+) ", text, re.M))) == [
        header.base_offset for segment in log.segments for _, header in segment.headers()
    ]
    assert "isvalid: false" not in text
    assert text.count("payload: first") == 60
    assert text.count("endTxnMarker: COMMIT") == text.count("endTxnMarker: ABORT") == 1


def test_indexes_pass_the_sanity_check(log: Log) -> None:
    paths = [*log.dir.glob("*.index"), *log.dir.glob("*.timeindex")]
    text = dump(*sorted(paths))
    assert text.count("passed sanity check.") == len(paths) == 4
    text = dump(*sorted(log.dir.glob("*.timeindex")))
    assert text.count("timestamp: ") == sum(len(segment.times) for segment in log.segments)
    assert "mismatch" not in text and "out of order" not in text


def test_snapshots(log: Log) -> None:
    text = dump(*sorted(log.dir.glob("*.snapshot"))[-1:])
    assert len(re.findall(r"producerId: 90[012] producerEpoch: 1 ", text)) == 3
    assert "producerId: 902 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[128]" in text


def test_transaction_index(log: Log) -> None:
    paths = [path for path in sorted(log.dir.glob("*.txnindex")) if path.stat().st_size]
    assert "producerId: 901 firstOffset: 124 lastOffset: 127 lastStableOffset: 128" in dump(*paths)
