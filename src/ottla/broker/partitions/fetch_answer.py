"""The bytes of an answer to Fetch: lines of partitions, and between them slices of log files."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.partitions.fetch_sessions import FetchPartition, FetchSession
from ottla.protocol import codec
from ottla.protocol.framing import response_prefix
from ottla.protocol.node_endpoints import NodeEndpoint, write_endpoints
from ottla.storage.results import LogSlice

if TYPE_CHECKING:
    from ottla.server.output_queue import Part

_WITH_SESSIONS = 7
_FLEXIBLE = 12
_WITH_TOPIC_IDS = 13
_WITH_ENDPOINTS = 16

_LINE_V5 = struct.Struct(">ihqqq")
_LINE_V4 = struct.Struct(">ihqq")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_SESSION = struct.Struct(">ihi")
_ABORTED = struct.Struct(">qq")
# Tag, size, the fields, no tags of their own.
_DIVERGING = struct.Struct(">BBiqB")
_CURRENT_LEADER = struct.Struct(">BBiiB")


class Line:
    """What one partition contributes to the answer."""

    __slots__ = (
        "aborted",
        "asked",
        "counts",
        "current_leader",
        "diverging",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_replica",
        "slice",
    )

    def __init__(self, asked: FetchPartition, error: int = 0) -> None:
        self.asked = asked
        # Towards `min_bytes`: what is there to be read, though this answer may have no room for it.
        self.counts = 0
        self.error = error
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.aborted: list[tuple[int, int]] | None = None
        self.slice: LogSlice | None = None
        # Where the leader's log left the follower's: an epoch and its end (v12).
        self.diverging: tuple[int, int] | None = None
        # Whom a client should have asked: broker and leader epoch (v12, KIP-951).
        self.current_leader: tuple[int, int] | None = None
        # Who is nearer to a consumer (v11, KIP-392).
        self.preferred_replica = -1


class FetchAnswer:
    __slots__ = ("_is_flexible", "_out", "_parts", "_size", "_version", "endpoints")

    def __init__(self, version: int, session_id: int) -> None:
        self._version = version
        self._is_flexible = version >= _FLEXIBLE
        self._out = _head(version, session_id)
        self._parts: list[Part] = []
        self._size = 0
        # Of leaders that lines name (v16).
        self.endpoints: list[NodeEndpoint] = []

    def begin(self, topics: int) -> None:
        _write_length(self._out, topics, self._is_flexible)

    def begin_topic(self, key: bytes, partitions: int) -> None:
        _write_topic(self._out, key, self._version)
        _write_length(self._out, partitions, self._is_flexible)

    def add(self, lines: Sequence[Line]) -> None:
        """Of the topic that was begun last."""
        version, is_flexible, out = self._version, self._is_flexible, self._out
        for line in lines:
            _write_line(out, line, version, is_flexible)
            if line.slice is not None:
                self._size += len(out) + line.slice.size
                self._parts.append(out)
                self._parts.append(line.slice)
                self._out = out = bytearray()
            if is_flexible:
                _write_tags(out, line)

    def end_topic(self) -> None:
        if self._is_flexible:
            self._out.append(0)

    def finish(self, correlation_id: int) -> list[Part]:
        out, parts = self._out, self._parts
        if self._is_flexible:
            write_endpoints(out, self.endpoints if self._version >= _WITH_ENDPOINTS else [])
        prefix = response_prefix(self._size + len(out), correlation_id, self._is_flexible)
        if not parts:
            return [prefix + out]
        return [prefix, *parts, out]


def empty_answer(version: int, correlation_id: int, error: int, session_id: int = 0, throttle_ms: int = 0) -> bytes:
    is_flexible = version >= _FLEXIBLE
    out = _head(version, session_id, error, throttle_ms)
    _write_length(out, 0, is_flexible)
    if is_flexible:
        out.append(0)
    return response_prefix(len(out), correlation_id, is_flexible) + out


def unheard(session: FetchSession, lines: Iterable[Line]) -> list[Line]:
    """What the client of a session has not heard yet; it is noted as told."""
    found = []
    for line in lines:
        asked = line.asked
        if line.slice is None and not line.error and line.preferred_replica < 0:
            if line.high_watermark == asked.told_high_watermark and line.log_start_offset == asked.told_log_start:
                continue
        elif line.slice is not None and asked.key in session.partitions:
            session.partitions.move_to_end(asked.key)
        asked.told_high_watermark = -1 if line.error else line.high_watermark
        asked.told_log_start = line.log_start_offset
        found.append(line)
    return found


def by_topic(lines: Iterable[Line]) -> dict[bytes, list[Line]]:
    topics: dict[bytes, list[Line]] = {}
    for line in lines:
        topics.setdefault(line.asked.key[0], []).append(line)
    return topics


def _head(version: int, session_id: int, error: int = 0, throttle_ms: int = 0) -> bytearray:
    if version >= _WITH_SESSIONS:
        return bytearray(_SESSION.pack(throttle_ms, error, session_id))
    return bytearray(_INT32.pack(throttle_ms))


def _write_topic(out: bytearray, key: bytes, version: int) -> None:
    if version >= _WITH_TOPIC_IDS:
        out += key
    elif version >= _FLEXIBLE:
        _write_length(out, len(key), True)
        out += key
    else:
        out += _INT16.pack(len(key))
        out += key


def _write_line(out: bytearray, line: Line, version: int, flexible: bool) -> None:
    """All of a partition's fields but the records themselves."""
    index = line.asked.key[1]
    if version >= 5:
        out += _LINE_V5.pack(index, line.error, line.high_watermark, line.last_stable_offset, line.log_start_offset)
    else:
        out += _LINE_V4.pack(index, line.error, line.high_watermark, line.last_stable_offset)
    if line.aborted is None:
        out += b"\x00" if flexible else b"\xff\xff\xff\xff"
    else:
        _write_length(out, len(line.aborted), flexible)
        for producer_id, first_offset in line.aborted:
            out += _ABORTED.pack(producer_id, first_offset)
            if flexible:
                out.append(0)
    if version >= 11:
        out += _INT32.pack(line.preferred_replica)
    _write_length(out, line.slice.size if line.slice is not None else 0, flexible)


def _write_tags(out: bytearray, line: Line) -> None:
    if line.diverging is None and line.current_leader is None:
        out.append(0)
        return
    out.append((line.diverging is not None) + (line.current_leader is not None))
    if line.diverging is not None:
        out += _DIVERGING.pack(0, 13, *line.diverging, 0)
    if line.current_leader is not None:
        out += _CURRENT_LEADER.pack(1, 9, *line.current_leader, 0)


def _write_length(out: bytearray, length: int, flexible: bool) -> None:
    if not flexible:
        out += _INT32.pack(length)
        return
    codec.write_uvarint(out, length + 1)
