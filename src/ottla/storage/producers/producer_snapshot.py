"""The `.snapshot` file: what the broker knows of each producer at one offset, in Kafka's format.

    int16 version (1), uint32 CRC-32C of all that follows, int32 entries, then per producer:
    int64 producer id, int16 epoch, int32 last sequence, int64 last offset, int32 offset delta of the last batch,
    int64 timestamp, int32 coordinator epoch, int64 first offset of the open transaction (-1: none)

It is a cache of the log: a missing or damaged one is replaced by replaying batch headers from the one before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ottla.records.checksum import crc32c

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
# The CRC covers everything behind itself.
_CRC_START = 6


class CorruptSnapshot(ValueError):
    """Not a snapshot that can be trusted."""


class ProducerSnapshotEntry(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def encode_snapshot(entries: Iterable[ProducerSnapshotEntry]) -> bytes:
    body = [_ENTRY.pack(*entry) for entry in entries]
    out = bytearray(_HEAD.pack(_VERSION, 0, len(body))) + b"".join(body)
    struct.pack_into(">I", out, 2, crc32c(memoryview(out)[_CRC_START:]))
    return bytes(out)


def decode_snapshot(data: bytes) -> list[ProducerSnapshotEntry]:
    if len(data) < _HEAD.size:
        raise CorruptSnapshot(f"only {len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}")
    if crc != crc32c(memoryview(data)[_CRC_START:]):
        raise CorruptSnapshot("wrong CRC")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries in {len(data)} bytes")
    return [ProducerSnapshotEntry._make(row) for row in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]
