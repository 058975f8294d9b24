"""Record batches that no proper producer sends, each with the error a Kafka broker answers.

The codes were taken from Apache Kafka 4.3.1; `tests/broker/test_produce_like_kafka.py` asks it again where its jars are
at hand. The batches are also the seeds of the fuzz test.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, assemble_batch, build_batch, encode_record


def now_ms() -> int:
    return int(time.time() * 1000)


def plain(*values: bytes, **fields: Any) -> bytearray:
    stamp = fields.pop("timestamp", None)
    key = fields.pop("key", b"k")
    stamp = now_ms() if stamp is None else stamp
    return build_batch([Record(n, stamp, key, value) for n, value in enumerate(values or (b"v",))], **fields)


def patched(batch: bytearray, position: int, letter: str, value: int, *, crc: bool = True) -> bytearray:
    """With one header field replaced, and the CRC made right again unless that is the point."""
    struct.pack_into(">" + letter, batch, position, value)
    if crc:
        v2.restamp_crc(batch, 0, len(batch))
    return batch


def raw_body(body: bytes, count: int, *, codec: int = 0, **fields: Any) -> bytearray:
    """A batch with a right header around any bytes."""
    known = {
        "attributes": codec,
        "base_offset": 0,
        "leader_epoch": -1,
        "last_offset_delta": count - 1,
        "base_timestamp": now_ms(),
        "max_timestamp": now_ms(),
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "count": count,
    }
    return assemble_batch(body, **(known | fields))


def legacy_message(magic: int) -> bytes:
    """A message set entry as before Kafka 0.11."""
    import zlib

    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", now_ms()) if magic == 1 else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", 5) + b"value"
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def record_bytes(*values: bytes) -> bytearray:
    out = bytearray()
    for number, value in enumerate(values):
        encode_record(out, Record(number, 0, b"k", value), 0, 0)
    return out


_LENGTH, _MAGIC, _CRC, _ATTRIBUTES, _DELTA, _BASE_TIME, _MAX_TIME = 8, 16, 17, 21, 23, 27, 35
_PRODUCER_ID, _EPOCH, _SEQUENCE, _COUNT = 43, 51, 53, 57

Made = Callable[[], bytes | bytearray]
E = ErrorCode

HOSTILE: dict[str, tuple[Made, ErrorCode]] = {
    "no bytes at all": (lambda: b"", E.INVALID_RECORD),
    "three bytes": (lambda: b"abc", E.INVALID_RECORD),
    "a header cut in the middle": (lambda: plain()[:30], E.INVALID_RECORD),
    "a batch without its last byte": (lambda: plain()[:-1], E.INVALID_RECORD),
    "a byte too many": (lambda: plain() + b"\x00", E.INVALID_RECORD),
    "two batches": (lambda: plain() + plain(), E.INVALID_RECORD),
    "length -1": (lambda: patched(plain(), _LENGTH, "i", -1), E.CORRUPT_MESSAGE),
    "length 0": (lambda: patched(plain(), _LENGTH, "i", 0), E.CORRUPT_MESSAGE),
    "length of a header alone": (lambda: patched(plain(), _LENGTH, "i", 49), E.INVALID_RECORD),
    "length 2^31-1": (lambda: patched(plain(), _LENGTH, "i", 2**31 - 1), E.INVALID_RECORD),
    "wrong crc": (lambda: patched(plain(), _CRC, "I", 1, crc=False), E.CORRUPT_MESSAGE),
    "a flipped bit in a record": (lambda: patched(plain(b"value"), 70, "b", 77, crc=False), E.CORRUPT_MESSAGE),
    "magic 0": (lambda: legacy_message(0), E.INVALID_RECORD),
    "magic 1": (lambda: legacy_message(1), E.INVALID_RECORD),
    "magic 3": (lambda: patched(plain(), _MAGIC, "b", 3), E.CORRUPT_MESSAGE),
    "magic -1": (lambda: patched(plain(), _MAGIC, "b", -1), E.CORRUPT_MESSAGE),
    "codec 5": (lambda: patched(plain(), _ATTRIBUTES, "h", 5), E.INVALID_RECORD),
    "codec 7": (lambda: patched(plain(), _ATTRIBUTES, "h", 7), E.INVALID_RECORD),
    "control bit": (lambda: patched(plain(), _ATTRIBUTES, "h", v2.CONTROL_BIT), E.INVALID_RECORD),
    "log-append time set by the client": (
        lambda: patched(plain(), _ATTRIBUTES, "h", v2.TIMESTAMP_TYPE_BIT),
        E.INVALID_TIMESTAMP,
    ),
    "more offsets than records": (lambda: patched(plain(b"a", b"b"), _DELTA, "i", 5), E.INVALID_RECORD),
    "fewer offsets than records": (lambda: patched(plain(b"a", b"b"), _DELTA, "i", 0), E.INVALID_RECORD),
    "negative offset delta": (lambda: patched(plain(), _DELTA, "i", -1), E.INVALID_RECORD),
    "zero records": (lambda: raw_body(b"", 0), E.INVALID_RECORD),
    "zero records that claim one": (lambda: raw_body(b"", 1), E.INVALID_RECORD),
    "minus one records": (lambda: patched(plain(), _COUNT, "i", -1), E.INVALID_RECORD),
    "2^31-1 records": (
        lambda: patched(patched(plain(), _DELTA, "i", 2**31 - 2), _COUNT, "i", 2**31 - 1),
        E.INVALID_RECORD,
    ),
    "a day and a bit ahead": (lambda: plain(timestamp=now_ms() + 90_000_000), E.INVALID_TIMESTAMP),
    "max timestamp 2^63-1": (lambda: patched(plain(), _MAX_TIME, "q", 2**63 - 1), E.INVALID_TIMESTAMP),
    "timestamp 2^63-1": (lambda: plain(timestamp=2**63 - 1), E.INVALID_TIMESTAMP),
    "transactional without a producer": (
        lambda: patched(plain(), _ATTRIBUTES, "h", v2.TRANSACTIONAL_BIT),
        E.INVALID_RECORD,
    ),
    "a producer id without a sequence": (lambda: plain(producer_id=5, producer_epoch=0), E.INVALID_RECORD),
    "a producer id without an epoch": (lambda: plain(producer_id=5, base_sequence=0), E.INVALID_RECORD),
}

# Right headers around records that nobody can read. Our log never opens records, so a topic takes these unless it is
# compacted or has a codec of its own; Kafka opens every batch and refuses them.
UNREADABLE: dict[str, bytearray] = {
    "not gzip": raw_body(b"not compressed at all", 1, codec=1),
    "not snappy": raw_body(b"not compressed at all", 1, codec=2),
    "not lz4": raw_body(b"not compressed at all", 1, codec=3),
    "not zstd": raw_body(b"not compressed at all", 1, codec=4),
    "records that are noise": raw_body(b"\xff" * 40, 2),
    "negative header count": raw_body(bytes([2 * 8, 0, 0, 0, 2, 107, 2, 118, 1]), 1),
    "more records than it holds": patched(plain(b"a", codec=Codec.GZIP), _COUNT, "i", 2),
}
