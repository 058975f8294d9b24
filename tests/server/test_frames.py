"""Frames are the same whatever the pieces in which they arrive."""

from __future__ import annotations

import random
import struct

import pytest

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
