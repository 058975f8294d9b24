"""Varints, strings and arrays as they stand in messages: what generated code and readers by hand call."""

from __future__ import annotations

from typing import Any

from ottla.common.steps import Pauses

# What is copied between two stops of a generator.
_COPY_BYTES = 1 << 20
# Tags that may follow one struct; nothing defined has more than a handful.
TAGS_MAX = 32


class MalformedMessage(ValueError):
    """The bytes are not the message they claim to be."""


def read_uvarint(buffer: Any, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedMessage("varint does not fit 32 bits")
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("varint is longer than five bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def read_string(buffer: Any, start: int, length: int, size: int) -> str:
    # A compact string could be longer; Kafka refuses it, and it would fit into no version with a two-byte length.
    if length < 0 or start + length > size or length > 0x7FFF:
        raise MalformedMessage(f"string of {length} bytes is too long")
    return str(buffer[start : start + length], "utf-8")


def read_bytes(buffer: Any, start: int, length: int, size: int) -> bytes:
    if length < 0 or start + length > size:
        raise MalformedMessage(f"{length} bytes run past the end")
    return bytes(buffer[start : start + length])


def read_long_bytes(buffer: Any, start: int, length: int, size: int) -> Pauses[bytes | bytearray]:
    """With stops: to copy a hundred megabytes takes tens of milliseconds."""
    if length <= _COPY_BYTES:
        return read_bytes(buffer, start, length, size)
    if start + length > size:
        raise MalformedMessage(f"{length} bytes run past the end")
    copied = bytearray()
    for at in range(start, start + length, _COPY_BYTES):
        copied += buffer[at : min(at + _COPY_BYTES, start + length)]
        yield
    return copied


def check_array(length: int, position: int, size: int, left: int) -> int:
    """How many more elements the message may have."""
    if length < 0 or length > size - position:
        raise MalformedMessage(f"array of {length} elements cannot be in {size - position} bytes")
    if length > left:
        raise MalformedMessage("the message has too many elements")
    return left - length


def skip_tags(buffer: Any, position: int, size: int) -> int:
    count, position = read_uvarint(buffer, position)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tags")
    last = -1
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        if tag <= last:
            raise MalformedMessage("tags are not in rising order")
        last = tag
        length, position = read_uvarint(buffer, position)
        position += length
        if position > size:
            raise MalformedMessage("tagged field runs past the end")
    return position


def write_string(out: bytearray, text: str) -> None:
    raw = text.encode()
    if len(raw) > 0x7FFF:
        raise ValueError(f"a string of {len(raw)} bytes cannot be sent in this version")
    out += len(raw).to_bytes(2, "big")
    out += raw


def write_compact(out: bytearray, raw: Any) -> None:
    write_uvarint(out, len(raw) + 1)
    out += raw
