"""The cases in which a produced batch is opened: keys on compacted topics, and a topic that has its own codec.

Small plain batches are opened where they are. The codecs work in a thread, where they release the interpreter lock. A
batch may grow a hundredfold, and many may come at once: memory for what comes out is asked for before, and given back
after.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ottla.common.errors import ApiError, ErrorCode
from ottla.records.batch import CODEC_MASK, HEADER_SIZE, BatchHeader, read_header
from ottla.records.compression import Codec, DecompressionError, TooLarge, compress, size_hint
from ottla.records.record import assemble_batch, records_buffer
from ottla.records.validate import HeaderFields, Rules, check_size

_INLINE_BYTES_MAX = 16 * 1024
_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

RunInThread = Callable[..., Awaitable[Any]]
# Of these records, so many; raises ApiError.
CheckKeys = Callable[[bytes, int], Awaitable[None]]


class Memory(Protocol):
    """Of all requests together."""

    async def reserve(self, size: int) -> None: ...

    def release(self, size: int) -> None: ...


def needs_records(rules: Rules, header: HeaderFields) -> bool:
    return rules.keys_required or _target_codec(rules, BatchHeader._make(header)) is not None


def _target_codec(rules: Rules, header: BatchHeader) -> Codec | None:
    wanted = _CODECS.get(rules.codec_name)  # None for "producer"
    return wanted if wanted is not None and wanted != header.codec else None


async def prepare_records(
    batch: bytes, rules: Rules, run_in_thread: RunInThread, check_keys: CheckKeys, memory: Memory
) -> bytes | bytearray:
    """The batch as the topic wants it. Raises ApiError."""
    header = read_header(batch)
    try:
        # Whatever is compressed may turn out to be a bomb, however small it is.
        if len(batch) <= _INLINE_BYTES_MAX and not header.codec:
            return await _prepare(batch, header, rules, len(batch), _run_here, check_keys)
        limit_bytes = rules.decompressed_bytes_max
        size = min(limit_bytes, size_hint(Codec(header.codec), memoryview(batch)[HEADER_SIZE:]))
        while True:
            # What comes out, and the same again in another codec.
            reserved = size * (1 if _target_codec(rules, header) is None else 2)
            await memory.reserve(reserved)
            try:
                return await _prepare(batch, header, rules, size, run_in_thread, check_keys)
            except TooLarge:
                if size >= limit_bytes:
                    raise
            finally:
                memory.release(reserved)
            size = min(limit_bytes, size * 4)
    except DecompressionError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


async def _prepare(
    batch: bytes, header: BatchHeader, rules: Rules, limit_bytes: int, run: RunInThread, check_keys: CheckKeys
) -> bytes | bytearray:
    plain: bytes = await run(records_buffer, batch, 0, header, limit_bytes)
    if rules.keys_required:
        await check_keys(plain, header.record_count)
    codec = _target_codec(rules, header)
    if codec is None:
        return batch
    changed: bytearray = await run(_with_codec, header, plain, codec, rules.codec_levels.get(codec))
    check_size(len(changed), rules)
    return changed


async def _run_here(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)


def _with_codec(header: BatchHeader, plain: bytes, codec: Codec, level: int | None) -> bytearray:
    return assemble_batch(
        compress(codec, plain, level) if codec else plain,
        attributes=(header.attributes & ~CODEC_MASK) | codec,
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
