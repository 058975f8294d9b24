"""What stands before a value: a zero byte and the id of its schema; Protobuf also says which message of the file."""

from __future__ import annotations

import struct

HEAD = struct.Struct(">bI")


def place_bytes(place: tuple[int, ...]) -> bytes:
    """The place of a message in its file, as it stands before the message."""
    if place == (0,):
        return b"\x00"
    return b"".join(_zigzagged(number) for number in (len(place), *place))


def _zigzagged(number: int) -> bytes:
    raw, found = number << 1, bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*found, raw])


def zigzag(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises IndexError where the bytes end first."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at
        if shift > 63:
            raise IndexError("a number has no end")


def message_indexes(data: bytes, at: int = 0) -> tuple[tuple[int, ...], int]:
    """The place of the message in its file: a count and numbers; one zero byte is the first message."""
    count, at = zigzag(data, at)
    if not 0 <= count <= len(data):
        raise IndexError("more numbers than bytes")
    indexes = []
    for _ in range(count):
        index, at = zigzag(data, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at
