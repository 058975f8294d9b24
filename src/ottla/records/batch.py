"""The v2 record batch: its header, read and patched in place. Records inside are not touched here.

0  base offset            int64     outside the CRC: the broker stamps it
8  batch length           int32     bytes after this field
12 partition leader epoch int32     outside the CRC: the broker stamps it
16 magic                  int8      2
17 crc                    uint32    CRC-32C of everything from `attributes` on
21 attributes             int16     0-2 codec, 3 log-append time, 4 transactional, 5 control, 6 delete horizon
23 last offset delta      int32
27 base timestamp         int64
35 max timestamp          int64
43 producer id            int64
51 producer epoch         int16
53 base sequence          int32
57 record count           int32
61 records
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from ottla.records.checksum import crc32c

HEADER_SIZE = 61
LOG_OVERHEAD = 12  # base offset and length: what stands before the bytes that `length` counts
CRC_START = 21
MAGIC_OFFSET = 16

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
_STAMP_OFFSET = struct.Struct(">q")
_STAMP_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def uses_log_append_time(self) -> bool:
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_header(buffer: Any, position: int = 0) -> BatchHeader:
    """The header at `position`; raises struct.error when fewer than HEADER_SIZE bytes are left."""
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def stamp(buffer: Any, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write the two fields that the broker owns; the CRC does not cover them."""
    _STAMP_OFFSET.pack_into(buffer, position, base_offset)
    _STAMP_EPOCH.pack_into(buffer, position + LOG_OVERHEAD, leader_epoch)


def compute_crc(buffer: Any, position: int, size: int) -> int:
    """CRC-32C of the batch of `size` bytes at `position`."""
    crc: int = crc32c(memoryview(buffer)[position + CRC_START : position + size])
    return crc


def restamp_crc(buffer: Any, position: int, size: int) -> None:
    """After a change to anything the CRC covers."""
    _CRC.pack_into(buffer, position + 17, compute_crc(buffer, position, size))


def set_log_append_time(buffer: Any, position: int, header: BatchHeader, now_ms: int) -> None:
    """Make `now_ms` the time of every record in the batch, and renew the CRC."""
    _ATTRIBUTES.pack_into(buffer, position + 21, header.attributes | TIMESTAMP_TYPE_BIT)
    _STAMP_OFFSET.pack_into(buffer, position + 35, now_ms)
    restamp_crc(buffer, position, header.size)
