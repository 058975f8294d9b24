"""The four codecs: what goes in comes out, what is not of the codec is an error, and no bomb goes off."""

from __future__ import annotations

import gzip
import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records.compression import Codec, DecompressionError, compress, decompress

CODECS = list(Codec)
COMPRESSING = CODECS[1:]
MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 32 * 1024 + 1, 3 * MEGABYTE])
def test_what_goes_in_comes_out(codec: Codec, size: int) -> None:
    data = os.urandom(size // 2) + b"a" * (size - size // 2)
    assert decompress(codec, compress(codec, data), 4 * MEGABYTE) == data


@pytest.mark.parametrize("codec", COMPRESSING)
@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=2000))
def test_any_bytes_decompress_or_are_an_error(codec: Codec, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, MEGABYTE)) <= MEGABYTE
    except DecompressionError:
        pass


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_is_refused_within_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(100 * MEGABYTE))
    tracemalloc.start()
    with pytest.raises(DecompressionError, match="more than"):
        decompress(codec, bomb, MEGABYTE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MEGABYTE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_exactly_the_limit_is_allowed(codec: Codec) -> None:
    assert len(decompress(codec, compress(codec, bytes(MEGABYTE)), MEGABYTE)) == MEGABYTE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_cut_stream_is_an_error(codec: Codec) -> None:
    whole = compress(codec, os.urandom(5000))
    for size in (1, 5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(DecompressionError):
            decompress(codec, whole[:size], MEGABYTE)


def test_gzip_of_another_library_is_read_whatever_its_stated_size() -> None:
    data = os.urandom(1000) + bytes(50_000)
    assert decompress(Codec.GZIP, gzip.compress(data), MEGABYTE) == data


def test_plain_snappy_without_framing_is_read() -> None:
    import cramjam

    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"librdkafka does this")), 100) == (
        b"librdkafka does this"
    )


@pytest.mark.parametrize("level", [1, 9, 17])
@pytest.mark.parametrize("size", [0, 10, 64 * 1024, 300 * 1024])
def test_lz4_blocks_stand_alone_since_java_reads_no_others(level: int, size: int) -> None:
    data = (os.urandom(size // 8) + b"abc" * size)[:size]
    frame = compress(Codec.LZ4, data, level)
    assert frame[4] & 0x20, "blocks are linked"
    assert decompress(Codec.LZ4, frame, MEGABYTE) == data
