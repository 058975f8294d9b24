"""AddPartitionsToTxn by hand, v0-5: any client may name a million partitions, and the broker has one thread.

Partition numbers stay the bytes they are; an answer's rows are cut from them without a loop in Python. Reading and
writing are generators that pause now and then, so that the caller can let others have their turn.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from typing import NamedTuple

from ottla.protocol.codec import MalformedMessage, read_uvarint, write_uvarint

FLEXIBLE = 3
BATCHED = 4
_PAUSE_TOPICS = 64

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_PRODUCER = struct.Struct(">qh")

Pauses = Generator[None, None, None]


class Topic(NamedTuple):
    name: bytes
    indexes: bytes  # int32 each

    def __len__(self) -> int:
        return len(self.indexes) // 4

    def numbers(self, start: int = 0, end: int | None = None) -> tuple[int, ...]:
        part = self.indexes[4 * start : None if end is None else 4 * end]
        return struct.unpack(f">{len(part) // 4}i", part)


class Addition(NamedTuple):
    """Partitions of one transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    verify_only: bool
    topics: list[Topic]


class Result(NamedTuple):
    """One topic's part of the answer: a code for all of its partitions, or one for each."""

    topic: Topic
    code: int | Sequence[int]


# --- requests


def decode(frame: memoryview, position: int, version: int, into: list[Addition]) -> Pauses:
    """Raises MalformedMessage."""
    reader = _Reader(frame, position, version >= FLEXIBLE)
    try:
        if version < BATCHED:
            yield from _addition(reader, version, into)
        else:
            for _ in range(reader.array_length()):
                yield from _addition(reader, version, into)
        reader.tags()
    except (struct.error, IndexError):
        raise MalformedMessage(f"AddPartitionsToTxn v{version} ends too early") from None


def _addition(reader: _Reader, version: int, into: list[Addition]) -> Pauses:
    try:
        transactional_id = reader.text().decode()
    except UnicodeDecodeError:
        raise MalformedMessage("transactional id is not UTF-8") from None
    producer_id, epoch = _PRODUCER.unpack_from(reader.frame, reader.at)
    reader.at += _PRODUCER.size
    verify_only = False
    if version >= BATCHED:
        verify_only = reader.frame[reader.at] != 0
        reader.at += 1
    topics: list[Topic] = []
    for number in range(reader.array_length()):
        name = reader.text()
        topics.append(Topic(name, reader.take(4 * reader.array_length())))
        reader.tags()
        if number % _PAUSE_TOPICS == _PAUSE_TOPICS - 1:
            yield
    if version >= BATCHED:
        reader.tags()
    into.append(Addition(transactional_id, producer_id, epoch, verify_only, topics))


class _Reader:
    __slots__ = ("at", "flexible", "frame")

    def __init__(self, frame: memoryview, position: int, flexible: bool) -> None:
        self.frame = frame
        self.at = position
        self.flexible = flexible

    def text(self) -> bytes:
        if self.flexible:
            length, self.at = read_uvarint(self.frame, self.at)
            length -= 1
        else:
            (length,) = _INT16.unpack_from(self.frame, self.at)
            self.at += 2
        return self.take(length)

    def take(self, length: int) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.frame):
            raise MalformedMessage("AddPartitionsToTxn: a field runs past the end")
        start, self.at = self.at, end
        return bytes(self.frame[start:end])

    def array_length(self) -> int:
        if self.flexible:
            count, self.at = read_uvarint(self.frame, self.at)
            count -= 1
        else:
            (count,) = _INT32.unpack_from(self.frame, self.at)
            self.at += 4
        left = len(self.frame) - self.at
        if not 0 <= count <= left:
            raise MalformedMessage(f"array of {count} elements in {left} bytes")
        return count

    def tags(self) -> None:
        if not self.flexible:
            return
        count, self.at = read_uvarint(self.frame, self.at)
        for _ in range(count):
            _, self.at = read_uvarint(self.frame, self.at)
            size, self.at = read_uvarint(self.frame, self.at)
            self.take(size)


# --- responses


def encode(version: int, results: Sequence[tuple[str, Sequence[Result]]], out: bytearray) -> Pauses:
    """The body of the answer for each transaction's results; before v4 there is one."""
    flexible = version >= FLEXIBLE
    out += b"\x00\x00\x00\x00"  # throttle time
    if version < BATCHED:
        yield from _encode_topics(results[0][1], flexible, out)
    else:
        out += b"\x00\x00"  # error code
        _write_length(out, len(results), flexible)
        for transactional_id, topics in results:
            _write_text(out, transactional_id.encode(), flexible)
            yield from _encode_topics(topics, flexible, out)
            out.append(0)
    if flexible:
        out.append(0)


def _encode_topics(results: Sequence[Result], flexible: bool, out: bytearray) -> Pauses:
    _write_length(out, len(results), flexible)
    for number, (topic, code) in enumerate(results):
        _write_text(out, topic.name, flexible)
        _write_length(out, len(topic), flexible)
        out += _rows(topic, code, flexible)
        if flexible:
            out.append(0)
        if number % _PAUSE_TOPICS == _PAUSE_TOPICS - 1:
            yield


def _rows(topic: Topic, code: int | Sequence[int], flexible: bool) -> bytearray:
    """int32 partition, int16 code, and an empty tag byte where versions have one: column by column."""
    count, width = len(topic), 7 if flexible else 6
    rows = bytearray(width * count)
    for byte in range(4):
        rows[byte::width] = topic.indexes[byte::4]
    codes = _INT16.pack(code) * count if isinstance(code, int) else struct.pack(f">{count}h", *code)
    rows[4::width] = codes[0::2]
    rows[5::width] = codes[1::2]
    return rows


def _write_length(out: bytearray, length: int, flexible: bool) -> None:
    if flexible:
        write_uvarint(out, length + 1)
    else:
        out += _INT32.pack(length)


def _write_text(out: bytearray, raw: bytes, flexible: bool) -> None:
    if flexible:
        write_uvarint(out, len(raw) + 1)
    else:
        out += _INT16.pack(len(raw))
    out += raw
