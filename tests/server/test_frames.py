"""Frames are the same whatever the pieces in which they arrive."""

from __future__ import annotations

import mmap
import random
import struct
import sys

import pytest

from ottla.server import frames
from ottla.server.frames import FrameReader, FrameRefused

BYTES_MAX = 10_000


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def receive(reader: FrameReader, pieces: list[bytes], chance: random.Random | None = None) -> list[bytes]:
    """As a connection does: into a frame's own buffer where there is one, which may be small and grow."""
    found: list[bytes] = []
    for piece in pieces:
        while piece:
            if reader.buffer is None:
                reader.feed(memoryview(bytearray(piece)))
                piece = b""
                while (frame := reader.next()) is not None:
                    found.append(bytes(frame))
                    if chance is not None and chance.random() < 0.3:  # its request is still worked on
                        reader.keep()
                        reader.feed(memoryview(b""))
                if reader.incomplete is not None:
                    size, arrived = reader.incomplete
                    reader.begin(bytearray(min(size, arrived + 1)))
                else:
                    reader.keep()
                continue
            if reader.missing_room:
                reader.grow(min(reader.missing_room, 1 if chance is None else chance.randint(1, 5_000)))
            with reader.room as room:
                count = min(len(room), len(piece))
                room[:count] = piece[:count]
            piece = piece[count:]
            frame = reader.received(count)
            if frame is not None:
                found.append(bytes(frame))
    return found


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    pieces = []
    while data:
        size = chance.choice((1, 2, 3, 4, 5, 13, 14, 100, 5_000, len(data)))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


@pytest.mark.parametrize("seed", range(100))
def test_any_pieces_make_the_same_frames(seed: int) -> None:
    chance = random.Random(seed)
    bodies = [chance.randbytes(chance.choice((10, 11, 40, 3_000, BYTES_MAX))) for _ in range(chance.randint(1, 20))]
    data = b"".join(map(framed, bodies))
    reader = FrameReader(BYTES_MAX)
    assert receive(reader, cut(data, chance), chance) == bodies
    assert not reader.ahead and reader.buffer is None


def test_one_byte_at_a_time() -> None:
    bodies = [b"0123456789", b"x" * 500]
    data = b"".join(map(framed, bodies))
    assert receive(FrameReader(BYTES_MAX), [data[n : n + 1] for n in range(len(data))]) == bodies


@pytest.mark.parametrize("size", [-1, 0, 9, BYTES_MAX + 1, 2**31 - 1])
def test_a_size_that_no_request_has_is_refused_as_soon_as_it_is_there(size: int) -> None:
    reader = FrameReader(BYTES_MAX)
    with pytest.raises(FrameRefused) as refused:
        receive(reader, [framed(b"0123456789") + struct.pack(">i", size)])
    assert refused.value.size == size


def test_the_buffer_of_a_frame_grows_with_what_arrives() -> None:
    reader = FrameReader(BYTES_MAX)
    receive(reader, [struct.pack(">i", BYTES_MAX) + b"abc"])
    assert len(reader.buffer or b"") == 4


@pytest.mark.parametrize("seed", range(30))
def test_large_frames_in_buffers_that_grow_where_they_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_MAPPED_BYTES", 1_000)
    test_any_pieces_make_the_same_frames(seed)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a mapping does not grow")
def test_what_has_arrived_of_a_large_frame_is_a_mapping_and_no_more_than_it_grew_to() -> None:
    size = 3 * frames._MAPPED_BYTES
    reader = FrameReader(size)
    reader.feed(memoryview(bytearray(struct.pack(">i", size) + b"begin")))
    assert reader.next() is None
    reader.begin(bytearray(5))
    reader.grow(frames._MAPPED_BYTES)
    assert isinstance(reader.buffer, mmap.mmap)
    assert len(reader.buffer) == frames._MAPPED_BYTES + 5
    reader.grow(7)
    assert len(reader.buffer) == frames._MAPPED_BYTES + 12
    assert reader.buffer[:5] == b"begin"
