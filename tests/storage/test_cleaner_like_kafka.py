"""The same logs through Apache Kafka's own cleaner and through ours: what is left is the same, batch by batch."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import read_records
from ottla.storage.log import Log
from ottla.storage.segments.segment import TXN_INDEX_SUFFIX
from tests.storage.batches import open_log
from tests.storage.cleaning import COMPACT, clean, headers, put, put_marker
from tests.storage.test_kafka_dump_tool import dump
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = pytest.mark.jvm

RETENTION_MS = 3_600_000
CONFIG = replace(COMPACT, segment_bytes=3000, delete_retention_ms=RETENTION_MS)
CASES, ROUNDS = 5, 3


class History:
    """A random past: plain, idempotent and transactional producers, keys that meet, tombstones, keyless records."""

    def __init__(self, log: Log, seed: int, now_ms: int) -> None:
        self.log = log
        self.random = random.Random(seed)
        self.now_ms = now_ms
        self.sequences: dict[int, int] = {}
        self.open: set[int] = set()
        for _ in range(120):
            self.step()
        for producer_id in sorted(self.open):
            put_marker(log, producer_id, commit=True, timestamp=now_ms)
        log.roll(now_ms)

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.15 and self.open:
            producer_id = self.random.choice(sorted(self.open))
            self.open.discard(producer_id)
            put_marker(self.log, producer_id, commit=self.random.random() < 0.5, timestamp=self.now_ms)
        elif chance < 0.5:
            producer_id = self.random.randrange(4)
            self.open.add(producer_id)
            self.write(producer_id, v2.TRANSACTIONAL_BIT)
        elif chance < 0.75:
            self.write(10 + self.random.randrange(3), 0)
        else:
            self.write(-1, 0)

    def write(self, producer_id: int, attributes: int) -> None:
        pairs = [self.pair() for _ in range(self.random.randrange(1, 8))]
        fields = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(pairs)
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        codec = self.random.choice([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
        put(self.log, *pairs, codec=codec, attributes=attributes, timestamp=self.now_ms, **fields)

    def pair(self) -> tuple[bytes | None, bytes | None]:
        key = b"key-%d" % self.random.randrange(25) if self.random.random() > 0.03 else None
        return key, None if self.random.random() < 0.15 else b"v" * self.random.randrange(40)


def picture(log: Log) -> list[Any]:
    """All that compaction decides about. Not the base timestamp, unless it is a horizon: any base will do; nor how
    segments are grouped, which goes by their size, and so by what the codecs make of a batch."""
    seen: list[Any] = []
    for data, at, header in headers(log):
        base_ms = header.base_timestamp if header.has_delete_horizon else None
        kept = header._replace(length=0, crc=0, base_timestamp=0)
        seen.append((kept, base_ms, list(read_records(data, at))))
    # Kafka leaves the file out when there is nothing in it.
    indexed = [segment for segment in log.segments if segment.path(TXN_INDEX_SUFFIX).exists()]
    seen.append([entry for segment in indexed for entry in segment.txns.entries()])
    return seen


def run_kafka(rounds: list[tuple[Path, int]]) -> None:
    libs = require_kafka_libs()
    source = Path(__file__).parent / "KafkaCleaner.java"
    arguments = [text for folder, now_ms in rounds for text in (str(folder), str(now_ms))]
    command = [*quick_java("512m"), "-cp", class_path(libs), str(source)]
    outcome = subprocess.run(
        [*command, str(CONFIG.segment_bytes), str(RETENTION_MS), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.count("clean below") == len(rounds)


def test_what_is_left_is_the_same(tmp_path: Path) -> None:
    require_kafka_libs()
    now_ms = int(time.time() * 1000)  # Kafka forgets producers of long ago
    # The second round sees what the first left; at the third every horizon is past.
    times = [now_ms, now_ms + 1000, now_ms + 2 * RETENTION_MS]
    kafka_rounds: list[tuple[Path, int]] = []
    for case in range(CASES):
        ours = tmp_path / f"ours-{case}" / "orders-0"
        ours.mkdir(parents=True)
        log = open_log(ours, CONFIG)
        History(log, case, now_ms)
        log.close()
        for last in range(ROUNDS):
            theirs = tmp_path / f"kafka-{case}-{last}" / "orders-0"
            shutil.copytree(ours, theirs)
            kafka_rounds += [(theirs, one) for one in times[: last + 1]]
    run_kafka(kafka_rounds)
    removed = 0
    for case in range(CASES):
        log = open_log(tmp_path / f"ours-{case}" / "orders-0", CONFIG, clean=True)
        log.high_watermark = log.log_end_offset
        for number, one in enumerate(times):
            log.cleaned_offset = 0
            removed += clean(log, one, roll=False).records_removed
            theirs = open_log(tmp_path / f"kafka-{case}-{number}" / "orders-0", CONFIG, clean=True)
            for mine, kafkas in zip(picture(log), picture(theirs), strict=False):
                assert mine == kafkas, f"case {case}, round {number}"
            assert len(picture(log)) == len(picture(theirs))
            # The next round begins with what a start makes of it, as Kafka's did.
            log.close()
            log = open_log(tmp_path / f"ours-{case}" / "orders-0", CONFIG, clean=True)
            log.high_watermark = log.log_end_offset
    assert removed > 500


def test_kafkas_dump_tool_reads_a_cleaned_segment(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    log = open_log(tmp_path / "orders-0", CONFIG)
    History(log, 99, now_ms)
    clean(log, now_ms, roll=False)
    log.close()
    found = list(headers(log))
    text = dump(*(segment.path(".log") for segment in log.segments))
    assert "isvalid: false" not in text
    assert text.count("baseOffset: ") == len(found)
    assert text.count("| offset: ") == sum(header.record_count for _, _, header in found)
    horizons = sum(header.has_delete_horizon for _, _, header in found)
    assert text.count(f"deleteHorizonMs: OptionalLong[{now_ms + RETENTION_MS}]") == horizons > 0
    indexes = [path for segment in log.segments for path in segment.paths()[1:3]]
    text = dump(*indexes)
    assert text.count("is empty.") + text.count("passed sanity check.") == len(indexes)
