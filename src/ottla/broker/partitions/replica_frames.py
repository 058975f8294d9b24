"""A follower's fetches and their answers, by hand: Fetch v17, whose fields `messages.json` tells. There is one of each
for every few records that are produced, so microseconds count."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ottla.broker.partitions.fetch_sessions import Key
from ottla.broker.partitions.followed_partition import FollowedPartition
from ottla.protocol.codec import MalformedMessage, read_uvarint, write_uvarint

FETCH = 1
VERSION = 17

# Wait, least and most bytes, isolation level (uncommitted), session.
_HEAD = struct.Struct(">iiibii")
# Partition, leader epoch, offset, last fetched epoch, log start, bytes, no tags.
_ASKED = struct.Struct(">iiqiqiB")
_INT32 = struct.Struct(">i")
# One tag: 1, the replica state, of 13 bytes.
_REPLICA = struct.Struct(">BBBiqB")
_REPLICA_BYTES = 13

_ANSWER = struct.Struct(">ihi")
_LINE = struct.Struct(">ihqqq")
_DIVERGING = struct.Struct(">iq")
_DIVERGING_TAG = 0


class FetchedPartition(NamedTuple):
    key: Key
    error: int
    high_watermark: int
    log_start_offset: int
    diverging: tuple[int, int] | None
    # As they lie in the answer; the last batch may be cut short.
    records: memoryview | None


def fetch_body(
    *,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition_max_bytes: int,
    session_id: int,
    session_epoch: int,
    named: Iterable[FollowedPartition],
    forgotten: Iterable[Key],
    replica: int,
    replica_epoch: int,
) -> bytearray:
    out = bytearray(_HEAD.pack(max_wait_ms, min_bytes, max_bytes, 0, session_id, session_epoch))
    topics: dict[bytes, list[FollowedPartition]] = {}
    for followed in named:
        topics.setdefault(followed.topic_id, []).append(followed)
    write_uvarint(out, len(topics) + 1)
    for topic_id, members in topics.items():
        out += topic_id
        write_uvarint(out, len(members) + 1)
        for followed in members:
            log = followed.log
            out += _ASKED.pack(
                followed.index,
                followed.leader_epoch,
                followed.asked_offset,
                log.leader_epochs.latest,
                log.log_start_offset,
                partition_max_bytes,
                0,
            )
        out.append(0)
    gone: dict[bytes, list[int]] = {}
    for topic_id, index in forgotten:
        gone.setdefault(topic_id, []).append(index)
    write_uvarint(out, len(gone) + 1)
    for topic_id, indexes in gone.items():
        out += topic_id
        write_uvarint(out, len(indexes) + 1)
        for index in indexes:
            out += _INT32.pack(index)
        out.append(0)
    out.append(1)  # no rack: a follower wants the leader
    out += _REPLICA.pack(1, 1, _REPLICA_BYTES, replica, replica_epoch, 0)
    return out


def read_answer(body: memoryview) -> tuple[int, int, list[FetchedPartition]]:
    """Error, session, and the partitions. Raises MalformedMessage, struct.error or IndexError."""
    _, error, session_id = _ANSWER.unpack_from(body)
    count, p = read_uvarint(body, _ANSWER.size)
    fetched: list[FetchedPartition] = []
    for _ in range(count - 1):
        topic_id = bytes(body[p : p + 16])
        members, p = read_uvarint(body, p + 16)
        for _ in range(members - 1):
            index, code, high_watermark, _, log_start = _LINE.unpack_from(body, p)
            aborted, p = read_uvarint(body, p + _LINE.size)
            if aborted > 1:
                raise MalformedMessage("a follower is not told of aborted transactions")
            length, p = read_uvarint(body, p + 4)
            records = None
            if length > 1:
                end = p + length - 1
                if end > len(body):
                    raise MalformedMessage("records run past the end of the answer")
                records, p = body[p:end], end
            tags = body[p]
            p += 1
            diverging = None
            if tags:
                diverging, p = _read_tags(body, p, tags)
            fetched.append(FetchedPartition((topic_id, index), code, high_watermark, log_start, diverging, records))
        p = _skip_tags(body, p)
    return error, session_id, fetched


def _read_tags(body: memoryview, p: int, count: int) -> tuple[tuple[int, int] | None, int]:
    diverging = None
    for _ in range(count):
        tag, p = read_uvarint(body, p)
        size, p = read_uvarint(body, p)
        if tag == _DIVERGING_TAG:
            diverging = _DIVERGING.unpack_from(body, p)
        p += size
    return diverging, p


def _skip_tags(body: memoryview, p: int) -> int:
    if body[p]:
        return _read_tags(body, p + 1, body[p])[1]
    return p + 1
