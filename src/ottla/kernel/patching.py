"""Put a producer into a batch that was encoded elsewhere.

Executors do not know the producer: only the driver has one, and it must not share it. The checksum is renewed from the
change alone, so it costs the same for a kilobyte and a megabyte, and still tells of bytes that were damaged on their
way from the executor to the broker.
"""

from __future__ import annotations

import struct

from ottla.kernel.checksum import change

TRANSACTIONAL_BIT = 0x10
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT, _COUNT_AT = 43, 57
_CRC = struct.Struct(">I")
_CRC_AT = 17
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT, _AFTER_ATTRIBUTES_AT = 21, 23
_COUNT = struct.Struct(">i")


def patch(batch: bytearray, producer_id: int, epoch: int, base_sequence: int, *, size: int | None = None) -> None:
    """Write producer id, epoch and first sequence number into the batch, in place. Where `batch` is only its header,
    `size` is that of all of it."""
    size = len(batch) if size is None else size
    after = _PRODUCER.pack(producer_id, epoch, base_sequence)
    before = bytes(batch[_PRODUCER_AT:_COUNT_AT])
    (crc,) = _CRC.unpack_from(batch, _CRC_AT)
    batch[_PRODUCER_AT:_COUNT_AT] = after
    _CRC.pack_into(batch, _CRC_AT, crc ^ change(before, after, size - _COUNT_AT))


def take_out_of_transaction(batch: bytearray, *, size: int | None = None) -> None:
    """Batches are encoded for a transaction; one that is written without any must not say that it belongs to one."""
    size = len(batch) if size is None else size
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    before, after = _ATTRIBUTES.pack(attributes), _ATTRIBUTES.pack(attributes & ~TRANSACTIONAL_BIT)
    (crc,) = _CRC.unpack_from(batch, _CRC_AT)
    batch[_ATTRIBUTES_AT:_AFTER_ATTRIBUTES_AT] = after
    _CRC.pack_into(batch, _CRC_AT, crc ^ change(before, after, size - _AFTER_ATTRIBUTES_AT))


def record_count(batch: bytes | bytearray | memoryview) -> int:
    (count,) = _COUNT.unpack_from(batch, _COUNT_AT)
    return int(count)
