"""Batches for storage tests, and the small acts that most of them share."""

from __future__ import annotations

import os
from pathlib import Path

from ottla.common.ids import TopicId, TopicPartition
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch, iterate_batches, read_records
from ottla.storage.disk import DISK, Disk
from ottla.storage.loading.log_loader import load_log
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import LogSlice

TOPIC = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(range(16)))
NOW_MS = 1_700_000_000_000


def batch(*values: bytes, timestamp: int = NOW_MS, codec: Codec = Codec.NONE, **fields: int) -> bytearray:
    records = [Record(n, timestamp, None, value) for n, value in enumerate(values)]
    return build_batch(records, codec=codec, **fields)  # type: ignore[arg-type]


def open_log(directory: Path, config: LogConfig | None = None, disk: Disk = DISK, **points: int | None) -> Log:
    directory.mkdir(exist_ok=True)
    return load_log(directory, TOPIC, TOPIC_ID, config or LogConfig(), now_ms=NOW_MS, disk=disk, **points)


def append(log: Log, *values: bytes, timestamp: int = NOW_MS, leader_epoch: int = 0, **fields: int) -> int:
    """Append one batch and let everybody see it; gives its first offset."""
    data = batch(*values, timestamp=timestamp, **fields)
    result = log.append(data, leader_epoch=leader_epoch, now_ms=timestamp)
    log.high_watermark = log.log_end_offset
    return result.base_offset


def slice_bytes(piece: LogSlice) -> bytes:
    return os.pread(piece.file, piece.size, piece.position) if piece.size else b""


def read_all(log: Log, start: int | None = None, max_bytes: int = 1 << 30) -> list[tuple[int, bytes | None]]:
    """(offset, value) of everything from `start` on, read slice by slice as a consumer would."""
    offset = log.log_start_offset if start is None else start
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        data = slice_bytes(log.read(offset, max_bytes, upper_offset=log.log_end_offset, min_one=True))
        before = offset
        for position, header in iterate_batches(data):
            found += [(one.offset, one.value) for one in read_records(data, position) if one.offset >= before]
            offset = header.last_offset + 1
        if offset == before:
            break
    return found
