"""What stands in the files of a partition's folder, as data: for `ottla log dump`. Works on files that Kafka wrote too.

Nothing here changes a file, and damaged ones are shown as far as they go: each item says what is wrong with it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ottla.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, compute_crc, read_header
from ottla.records.compression import Codec, DecompressionError
from ottla.records.record import CorruptRecords, Record, read_records
from ottla.storage.disk import OpenFile
from ottla.storage.log_dirs.checkpoints import read_epochs
from ottla.storage.producers.producer_snapshot import CorruptSnapshot, ProducerSnapshotEntry, decode_snapshot
from ottla.storage.segments.indexes import CorruptIndex
from ottla.storage.segments.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from ottla.storage.segments.txn_index import AbortedTxn, decode_txn_index

KINDS = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)


class BatchDump(NamedTuple):
    """One batch. `problem` is None when it is whole; `records` only when they were asked for."""

    position: int
    header: BatchHeader
    codec: str
    marker: str | None
    problem: str | None
    records: tuple[Record, ...]


class OffsetEntry(NamedTuple):
    offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    offset: int


class DumpError(ValueError):
    """The file cannot be read as what its name says."""


def kind_of(path: Path) -> str:
    """The suffix that tells what a file is, whatever state of deletion or cleaning it is in."""
    for part in reversed(path.suffixes):
        if part in KINDS:
            return part
    raise DumpError(f"{path.name} is not a file of a log: one of {', '.join(KINDS)} is expected")


def base_offset_of(path: Path) -> int:
    digits = path.name.split(".", 1)[0]
    if not digits.isdigit():
        raise DumpError(f"{path.name} does not begin with an offset")
    return int(digits)


def dump_log(path: Path, *, records: bool = False) -> Iterator[BatchDump]:
    """Every batch of a segment; stops behind the first one whose end cannot be found."""
    file = OpenFile(os.open(path, os.O_RDONLY))
    size = os.fstat(file.fd).st_size
    position = 0
    while position < size:
        raw = os.pread(file.fd, HEADER_SIZE, position)
        if len(raw) < HEADER_SIZE:
            raise DumpError(f"{size - position} bytes at position {position} are less than a batch header")
        header = read_header(raw)
        if header.magic != 2 or header.length < HEADER_SIZE - LOG_OVERHEAD:
            raise DumpError(f"no batch at position {position}: magic {header.magic}, length {header.length}")
        data = os.pread(file.fd, header.size, position)
        yield _dump_batch(position, header, data, records)
        position += header.size


def _dump_batch(position: int, header: BatchHeader, data: bytes, with_records: bool) -> BatchDump:
    codec = Codec(header.codec).name.lower() if header.codec in tuple(Codec) else f"unknown codec {header.codec}"
    records: tuple[Record, ...] = ()
    marker = problem = None
    if len(data) < header.size:
        problem = f"the file ends {header.size - len(data)} bytes early"
    elif compute_crc(data, 0, header.size) != header.crc:
        problem = "wrong CRC"
    elif with_records or header.is_control:
        try:
            records = tuple(read_records(data))
            marker = _marker_name(records) if header.is_control else None
        except (CorruptRecords, DecompressionError, ValueError, struct.error) as error:
            problem = str(error)
    return BatchDump(position, header, codec, marker, problem, records if with_records else ())


def _marker_name(records: tuple[Record, ...]) -> str:
    kind = struct.unpack_from(">h", records[0].key or b"", 2)[0] if records else -1
    return {0: "abort", 1: "commit"}.get(kind, f"control {kind}")


def dump_offset_index(path: Path) -> list[OffsetEntry]:
    base = base_offset_of(path)
    return [
        OffsetEntry(base + relative, position) for relative, position in struct.iter_unpack(">ii", _entries(path, 8))
    ]


def dump_time_index(path: Path) -> list[TimeEntry]:
    base = base_offset_of(path)
    return [
        TimeEntry(timestamp, base + relative) for timestamp, relative in struct.iter_unpack(">qi", _entries(path, 12))
    ]


def dump_txn_index(path: Path) -> list[AbortedTxn]:
    try:
        return decode_txn_index(path.read_bytes(), base_offset_of(path))
    except CorruptIndex as error:
        raise DumpError(f"{path.name}: {error}") from None


def dump_snapshot(path: Path) -> list[ProducerSnapshotEntry]:
    try:
        return decode_snapshot(path.read_bytes())
    except CorruptSnapshot as error:
        raise DumpError(f"{path.name}: {error}") from None


def dump_leader_epochs(path: Path) -> list[tuple[int, int]]:
    """(epoch, start offset)"""
    return read_epochs(path) or []


def index_problems(index: Path) -> list[str]:
    """Where an offset or time index does not fit the log beside it; empty when it does."""
    log = index.with_name(index.name.split(".", 1)[0] + LOG_SUFFIX)
    batches = {dumped.position: dumped.header for dumped in dump_log(log)}
    if kind_of(index) == INDEX_SUFFIX:
        return [
            f"offset {entry.offset} at position {entry.position}"
            for entry in dump_offset_index(index)
            if entry.position not in batches or batches[entry.position].last_offset != entry.offset
        ]
    return [
        f"timestamp {entry.timestamp} at offset {entry.offset}"
        for entry in dump_time_index(index)
        if not any(
            header.base_offset <= entry.offset <= header.last_offset and header.max_timestamp == entry.timestamp
            for header in batches.values()
        )
    ]


def _entries(path: Path, entry_bytes: int) -> bytes:
    """Without the zeros that Kafka leaves behind the last entry while a segment is open."""
    raw = path.read_bytes()
    if len(raw) % entry_bytes:
        raise DumpError(f"{path.name} is {len(raw)} bytes long, not a multiple of {entry_bytes}")
    while raw.endswith(bytes(entry_bytes)):
        raw = raw[: len(raw) - entry_bytes] if len(raw) < 4096 else raw.rstrip(b"\0")
        raw += bytes(-len(raw) % entry_bytes)
    return raw
