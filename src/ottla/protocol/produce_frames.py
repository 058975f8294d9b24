"""Produce requests and responses by hand, v3-13: this is where microseconds count.

A producer's requests to one partition differ in nothing but correlation id and records. `Layouts` keeps what was found
before the records of such requests by their very bytes: the next request that starts with the same bytes needs no
parsing, not even of its header, and its answer differs from the last one only in a few numbers. That is worth more
than half of the time that a small request takes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ottla.common.steps import Pauses, to_the_end
from ottla.protocol.codec import REQUEST_ELEMENTS_MAX, TAGS_MAX, MalformedMessage, read_uvarint, write_uvarint
from ottla.protocol.framing import response_prefix
from ottla.protocol.node_endpoints import NodeEndpoint, write_endpoints

FLEXIBLE = 9
WITH_TOPIC_IDS = 13
_WITH_RECORD_ERRORS = 8
_WITH_LOG_START = 5
_WITH_HINTS = 10

# What is read, or written, between two stops.
PIECES_AT_ONCE = 128

_HEADER = struct.Struct(">ii")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")
_LINE_V5 = struct.Struct(">ihqqq")
_LINE_V3 = struct.Struct(">ihqq")
# One tag: 0, its size, leader and epoch, no tags of its own.
_CURRENT_LEADER = struct.Struct(">BBBiiB")
# Where the correlation id of a request ends.
_AFTER_CORRELATION_ID = 8


class ProduceRequest(NamedTuple):
    """What holds for the whole request."""

    acks: int
    transactional_id: str | None
    timeout_ms: int = 0


class Piece(NamedTuple):
    """One partition's records in a request."""

    partition: int
    records: memoryview | None


class Outcome(NamedTuple):
    """One partition's line in the answer."""

    partition: int
    error: int = 0
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    # Who leads instead, and since which epoch (v10, KIP-951).
    current_leader: tuple[int, int] | None = None


Topics = list[tuple[bytes, list[Piece]]]
Outcomes = list[tuple[bytes, list[Outcome]]]


# --- requests


def decode(frame: memoryview, position: int, version: int) -> tuple[ProduceRequest, Topics]:
    """What holds for the whole request, and its topics; a topic's key is its name in UTF-8 or, from v13, its id. Raises
    MalformedMessage."""
    return to_the_end(decode_in_steps(frame, position, version))


def decode_in_steps(frame: memoryview, position: int, version: int) -> Pauses[tuple[ProduceRequest, Topics]]:
    """The same, with a stop after every `PIECES_AT_ONCE` partitions, so with none in a usual request."""
    try:
        return (yield from _decode(frame, position, version))
    except (struct.error, IndexError):
        raise MalformedMessage(f"Produce v{version} ends too early") from None


def _decode(frame: memoryview, p: int, version: int) -> Pauses[tuple[ProduceRequest, Topics]]:
    flexible, size = version >= FLEXIBLE, len(frame)
    transactional_id, p = _nullable_text(frame, p, flexible, size)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, p)
    count, p = _array_length(frame, p + 6, flexible, size)
    topics: Topics = []
    left = REQUEST_ELEMENTS_MAX - count
    room = PIECES_AT_ONCE
    for _ in range(count):
        key, p = _topic_key(frame, p, version, size)
        partition_count, p = _array_length(frame, p, flexible, size)
        left -= partition_count
        if left < 0:
            raise MalformedMessage("the request has too many partitions")
        pieces: list[Piece] = []
        for _ in range(partition_count):
            piece, p = _piece(frame, p, flexible, size)
            pieces.append(piece)
            room -= 1
            if room < 0:
                yield
                room = PIECES_AT_ONCE
        if flexible:
            p = _skip_tags(frame, p)
        topics.append((key, pieces))
        room -= 1
    return ProduceRequest(acks, transactional_id, timeout_ms), topics


def _nullable_text(frame: memoryview, p: int, flexible: bool, size: int) -> tuple[str | None, int]:
    if flexible:
        length, p = read_uvarint(frame, p)
        length -= 1
    else:
        (length,) = _INT16.unpack_from(frame, p)
        p += 2
    if length < 0:
        return None, p
    if p + length > size:
        raise MalformedMessage("transactional id runs past the end of the request")
    try:
        return str(frame[p : p + length], "utf-8"), p + length
    except UnicodeDecodeError:
        raise MalformedMessage("transactional id is not UTF-8") from None


def _piece(frame: memoryview, p: int, flexible: bool, size: int) -> tuple[Piece, int]:
    (partition,) = _INT32.unpack_from(frame, p)
    length, p = _bytes_length(frame, p + 4, flexible)
    records = None
    if length >= 0:
        end = p + length
        if end > size:
            raise MalformedMessage("records run past the end of the request")
        records, p = frame[p:end], end
    return Piece(partition, records), _skip_tags(frame, p) if flexible else p


def _bytes_length(frame: memoryview, p: int, flexible: bool) -> tuple[int, int]:
    if flexible:
        length, p = read_uvarint(frame, p)
        return length - 1, p
    return _INT32.unpack_from(frame, p)[0], p + 4


def _array_length(frame: memoryview, p: int, flexible: bool, size: int) -> tuple[int, int]:
    count, p = _bytes_length(frame, p, flexible)
    if count < 0 or count > size - p:
        raise MalformedMessage(f"array of {count} elements in {size - p} bytes")
    return count, p


def _topic_key(frame: memoryview, p: int, version: int, size: int) -> tuple[bytes, int]:
    if version >= WITH_TOPIC_IDS:
        end = p + 16
    elif version >= FLEXIBLE:
        length, p = read_uvarint(frame, p)
        end = p + length - 1
    else:
        (length,) = _INT16.unpack_from(frame, p)
        p += 2
        end = p + length
    if end < p or end > size:
        raise MalformedMessage("topic runs past the end of the request")
    return bytes(frame[p:end]), end


def _skip_tags(frame: memoryview, p: int) -> int:
    count, p = read_uvarint(frame, p)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tags")
    for _ in range(count):
        _, p = read_uvarint(frame, p)
        length, p = read_uvarint(frame, p)
        p += length
    return p


# --- requests that look like one before


class Layout:
    """All that is constant in a producer's requests to one partition, and in their answers."""

    __slots__ = (
        "_flexible",
        "_head",
        "_pack",
        "_start",
        "_tail",
        "_tail_size",
        "_with_log_start",
        "is_by_id",
        "key",
        "partition",
        "request",
        "version",
    )

    def __init__(self, version: int, start: int, request: ProduceRequest, key: bytes, partition: int) -> None:
        """`start` is where the size of the records stands."""
        self.version = version
        self.is_by_id = version >= WITH_TOPIC_IDS
        self.request = request
        self.key = key
        self.partition = partition
        self._start = start
        self._flexible = version >= FLEXIBLE
        # What stands behind the records: the tags of partition, topic and request, all empty.
        self._tail_size = 3 if self._flexible else 0
        empty = encode(version, 0, [(key, [Outcome(partition)])])
        at = empty.rindex(_INT32.pack(partition) + b"\x00\x00" + b"\xff" * 8) + 6
        self._with_log_start = version >= _WITH_LOG_START
        numbers = "qqq" if self._with_log_start else "qq"
        self._head = empty[8:at]
        self._tail = empty[at + 8 * len(numbers) :]
        # The whole answer, its size before it, in one go.
        layout = struct.Struct(f">ii{len(self._head)}s{numbers}{len(self._tail)}s")
        self._pack = partial(layout.pack, layout.size - 4)

    def records(self, frame: memoryview) -> memoryview | None:
        """The records of a request that begins as this layout's do; None if what follows does not fit."""
        start = self._start
        size = len(frame)
        if self._flexible:
            if size < start + 8 or frame[size - 1] or frame[size - 2] or frame[size - 3]:
                return None
            length = frame[start]
            start += 1
            if length > 127:
                length, start = read_uvarint(frame, start - 1)
            length -= 1
        else:
            if size < start + 8:
                return None
            (length,) = _INT32.unpack_from(frame, start)
            start += 4
        end = start + length
        return frame[start:end] if length > 0 and end + self._tail_size == size else None

    def answer(self, correlation_id: int, base_offset: int, log_append_time: int, log_start_offset: int) -> bytes:
        if self._with_log_start:
            return self._pack(correlation_id, self._head, base_offset, log_append_time, log_start_offset, self._tail)
        return self._pack(correlation_id, self._head, base_offset, log_append_time, self._tail)


class Layouts:
    """The layouts of recent requests by what stands before their records; shared by all connections, and bounded."""

    COUNT_MAX = 4096
    # Longer ones are rare, and somebody could send many on purpose.
    PREFIX_BYTES_MAX = 512

    def __init__(self) -> None:
        # By the first four bytes of a request, which are API 0 and its version; then by what follows the correlation
        # id: client, transaction, acks, topic, partition.
        self.known: dict[int, dict[bytes, Layout]] = {version: {} for version in range(3, 14)}

    def find(self, frame: memoryview, prefix_end: int) -> tuple[Layout | None, int]:
        """The layout and the correlation id. `prefix_end` is where the prefix of the connection's last request ended:
        those for other partitions of the topic are as long."""
        api_and_version, correlation_id = _HEADER.unpack_from(frame)
        known = self.known.get(api_and_version)
        if known is None:
            return None, correlation_id
        return known.get(bytes(frame[_AFTER_CORRELATION_ID:prefix_end])), correlation_id

    def remember(self, frame: memoryview, version: int, request: ProduceRequest, topics: Topics) -> int:
        """Where the request's prefix ends, if it has records for one partition and nothing unusual; else 0."""
        if len(topics) != 1 or len(topics[0][1]) != 1 or request.acks not in (-1, 1):
            return 0
        key, (piece,) = topics[0]
        if not piece.records:
            return 0
        end = len(frame) - (3 if version >= FLEXIBLE else 0) - _sized(len(piece.records), version)
        prefix = bytes(frame[_AFTER_CORRELATION_ID:end])
        known = self.known[version]
        if prefix not in known:
            layout = Layout(version, end, request, key, piece.partition)
            if len(prefix) > self.PREFIX_BYTES_MAX or layout.records(frame) != piece.records:
                return 0
            if len(known) >= self.COUNT_MAX:
                known.clear()
            known[prefix] = layout
        return end


def _sized(length: int, version: int) -> int:
    """How many bytes a length and what it counts take."""
    if version < FLEXIBLE:
        return length + 4
    return length + 1 + ((length + 1).bit_length() - 1) // 7


# --- responses


def encode(version: int, correlation_id: int, outcomes: Outcomes, endpoints: Sequence[NodeEndpoint] = ()) -> bytes:
    """`endpoints` are those of the leaders that outcomes name."""
    return to_the_end(encode_in_steps(version, correlation_id, outcomes, endpoints))


def encode_in_steps(
    version: int, correlation_id: int, outcomes: Outcomes, endpoints: Sequence[NodeEndpoint] = ()
) -> Pauses[bytes]:
    flexible = version >= FLEXIBLE
    out = bytearray()
    _write_length(out, len(outcomes), flexible)
    for key, lines in outcomes:
        if version >= WITH_TOPIC_IDS:
            out += key
        else:
            _write_text(out, key, flexible)
        _write_length(out, len(lines), flexible)
        for number, line in enumerate(lines, 1):
            _write_line(out, line, version, flexible)
            if number % PIECES_AT_ONCE == 0:
                yield
        if flexible:
            out.append(0)
    out += b"\x00\x00\x00\x00"  # throttle time
    if flexible:
        write_endpoints(out, endpoints if version >= _WITH_HINTS else ())
    return response_prefix(len(out), correlation_id, flexible) + out


def _write_line(out: bytearray, line: Outcome, version: int, flexible: bool) -> None:
    if version >= _WITH_LOG_START:
        out += _LINE_V5.pack(line.partition, line.error, line.base_offset, line.log_append_time, line.log_start_offset)
    else:
        out += _LINE_V3.pack(line.partition, line.error, line.base_offset, line.log_append_time)
    if version >= _WITH_RECORD_ERRORS:
        _write_length(out, len(line.record_errors), flexible)
        for batch_index, message in line.record_errors:
            out += _INT32.pack(batch_index)
            _write_text(out, message.encode(), flexible)
            if flexible:
                out.append(0)
        _write_text(out, None if line.message is None else line.message.encode(), flexible)
    if line.current_leader is not None and version >= _WITH_HINTS:
        out += _CURRENT_LEADER.pack(1, 0, 9, *line.current_leader, 0)
    elif flexible:
        out.append(0)


def _write_length(out: bytearray, length: int, flexible: bool) -> None:
    if flexible:
        write_uvarint(out, length + 1)
    else:
        out += _INT32.pack(length)


def _write_text(out: bytearray, raw: bytes | None, flexible: bool) -> None:
    if raw is None:
        out += b"\x00" if flexible else b"\xff\xff"
        return
    if flexible:
        write_uvarint(out, len(raw) + 1)
    else:
        out += _INT16.pack(len(raw))
    out += raw
