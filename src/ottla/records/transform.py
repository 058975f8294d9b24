"""The cases in which a produced batch is opened: keys on compacted topics, and a topic that has its own codec.

Small batches are opened where they are; larger ones in a thread, where the codecs release the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.records import batch as v2
from ottla.records.batch import BatchHeader, read_header
from ottla.records.compression import Codec, DecompressionError, compress
from ottla.records.record import CorruptRecords, assemble_batch, read_records, records_bytes
from ottla.records.validate import HeaderFields, RecordErrors, Rules

_INLINE_BYTES_MAX = 16 * 1024
_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

RunInThread = Callable[..., Awaitable[Any]]


def needs_records(rules: Rules, header: HeaderFields) -> bool:
    return rules.keys_required or _target_codec(rules, BatchHeader._make(header)) is not None


def _target_codec(rules: Rules, header: BatchHeader) -> Codec | None:
    wanted = _CODECS.get(rules.codec_name)  # None for "producer"
    return wanted if wanted is not None and wanted != header.codec else None


async def prepare_records(batch: bytes, rules: Rules, run_in_thread: RunInThread) -> bytes | bytearray:
    """The batch as the topic wants it. Raises ApiError."""
    if len(batch) <= _INLINE_BYTES_MAX:
        return _prepare(batch, rules)
    prepared: bytes | bytearray = await run_in_thread(_prepare, batch, rules)
    return prepared


def _prepare(batch: bytes, rules: Rules) -> bytes | bytearray:
    header = read_header(batch)
    try:
        if rules.keys_required:
            _check_keys(batch, rules)
        codec = _target_codec(rules, header)
        return batch if codec is None else _recompress(batch, header, codec, rules)
    except (CorruptRecords, DecompressionError) as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def _check_keys(batch: bytes, rules: Rules) -> None:
    base = read_header(batch).base_offset
    missing = tuple(
        (record.offset - base, "a record of a compacted topic has a key")
        for record in read_records(batch, limit_bytes=rules.decompressed_bytes_max)
        if record.key is None
    )
    if missing:
        raise RecordErrors("records of a compacted topic have keys", missing)


def _recompress(batch: bytes, header: BatchHeader, codec: Codec, rules: Rules) -> bytearray:
    plain = records_bytes(batch, 0, header, rules.decompressed_bytes_max)
    return assemble_batch(
        compress(codec, plain, rules.codec_levels.get(codec)) if codec else plain,
        attributes=(header.attributes & ~v2.CODEC_MASK) | codec,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=header.record_count,
    )
