"""Batches with keys, transaction markers, and a round of compaction in this process, for the tests of the cleaner."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch, iterate_batches, read_records
from ottla.storage.compaction.compactor import compact
from ottla.storage.compaction.job import CompactionJob, GroupResult, RoundResult
from ottla.storage.compaction.plan import make_job, survey
from ottla.storage.compaction.swap import swap_in
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS

DAY_MS = 86_400_000
COMPACT = LogConfig(cleanup_delete=False, cleanup_compact=True, segment_bytes=2000, index_interval_bytes=300)

Pair = tuple[bytes | None, bytes | None]


def keyed(*pairs: Pair, timestamp: int = NOW_MS, codec: Codec = Codec.NONE, **fields: int) -> bytearray:
    records = [Record(n, timestamp + n, key, value) for n, (key, value) in enumerate(pairs)]
    return build_batch(records, codec=codec, **fields)  # type: ignore[arg-type]


def put(log: Log, *pairs: Pair, timestamp: int = NOW_MS, codec: Codec = Codec.NONE, **fields: int) -> int:
    """Append one batch of (key, value) and let everybody see it; gives its first offset."""
    data = keyed(*pairs, timestamp=timestamp, codec=codec, **fields)
    result = log.append(data, leader_epoch=0, now_ms=timestamp)
    log.high_watermark = log.log_end_offset
    return result.base_offset


def put_marker(log: Log, producer_id: int, *, commit: bool, epoch: int = 0, timestamp: int = NOW_MS) -> int:
    """End a transaction, as a coordinator would."""
    record = Record(0, timestamp, struct.pack(">hh", 0, 1 if commit else 0), struct.pack(">hi", 0, 0))
    data = build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=epoch,
        attributes=v2.TRANSACTIONAL_BIT | v2.CONTROL_BIT,
    )
    result = log.append(data, leader_epoch=0, now_ms=timestamp, origin=Origin.COORDINATOR)
    log.high_watermark = log.log_end_offset
    return result.base_offset


def clean(log: Log, now_ms: int = NOW_MS, *, map_bytes_max: int = 1 << 24, roll: bool = True) -> RoundResult:
    """One round over everything up to the active segment, whatever the dirty ratio."""
    if roll:
        log.roll(now_ms)
    cleanable = survey(log, now_ms)
    job = make_job(cleanable, now_ms, now_ms, map_bytes_max=map_bytes_max)
    return run_round(log, job)


def run_round(log: Log, job: CompactionJob, *, synced: bool = False) -> RoundResult:
    """What the broker and its worker do together, the values going through JSON as between them; with `synced` the
    folder is synced after each group, as the broker does it."""
    sent = CompactionJob.from_json(json.loads(json.dumps(job.to_json())))

    def report(group: GroupResult) -> None:
        swap_in(log, job, GroupResult(**json.loads(json.dumps(asdict(group)))))
        if synced and group.differs:
            log.disk.fsync_path(log.dir)

    result = compact(sent, report, log.disk)
    log.cleaned_offset = result.end_offset
    return result


def clean_all(log: Log, now_ms: int = NOW_MS, *, map_bytes_max: int = 1 << 24) -> int:
    """Rounds until nothing is dirty; gives their number."""
    log.roll(now_ms)
    rounds = 0
    while survey(log, now_ms).dirty_bytes:
        clean(log, now_ms, map_bytes_max=map_bytes_max, roll=False)
        rounds += 1
    return rounds


def headers(log: Log) -> Iterator[tuple[bytes, int, v2.BatchHeader]]:
    """(segment's bytes, position, header) of every batch."""
    for segment in filter(lambda one: one.size, log.segments):
        data = segment.path(".log").read_bytes()[: segment.size]
        for at, header in iterate_batches(data):
            assert v2.compute_crc(data, at, header.size) == header.crc
            yield data, at, header


def records(log: Log) -> list[Record]:
    """Every data record that is left, straight from the files."""
    return [one for data, at, header in headers(log) if not header.is_control for one in read_records(data, at)]


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(one.offset, one.key, one.value) for one in records(log)]


def table(log: Log) -> dict[bytes, bytes]:
    """What a reader of the whole log ends up with."""
    found: dict[bytes, bytes] = {}
    for one in records(log):
        assert one.key is not None
        if one.value is None:
            found.pop(one.key, None)
        else:
            found[one.key] = one.value
    return found


def leftovers(directory: Path, suffixes: Iterable[str] = (".cleaned", ".swap")) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.endswith(tuple(suffixes)))
