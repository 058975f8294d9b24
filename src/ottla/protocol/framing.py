"""Request headers in, response headers out. A frame is a 4-byte size and then the message.

Flexible versions (KIP-482) carry tagged fields in the header too, except that an ApiVersions *response* never does:
a client that has just met us cannot know yet which header to expect.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import NamedTuple

from ottla.protocol.codec import TAGS_MAX, MalformedMessage, definition, read_uvarint, version_range

API_VERSIONS = 18

# Requests up to this size may lie in a buffer that is used again for the next one; larger ones never do.
SHARED_BUFFER_BYTES = 256 * 1024

_HEADER = struct.Struct(">hhih")
_RESPONSE = struct.Struct(">ii")


class RequestHeader(NamedTuple):
    api_key: int
    version: int
    correlation_id: int
    client_id: bytes | None
    end: int  # where the client id stops; a flexible header's tags follow


def read_request_header(frame: memoryview) -> RequestHeader:
    """The part of the header that all versions share."""
    try:
        api_key, version, correlation_id, length = _HEADER.unpack_from(frame)
    except struct.error:
        raise MalformedMessage("a request is at least ten bytes") from None
    if length < 0:
        return RequestHeader(api_key, version, correlation_id, None, 10)
    end = 10 + length
    if end > len(frame):
        raise MalformedMessage("client id runs past the end")
    return RequestHeader(api_key, version, correlation_id, bytes(frame[10:end]), end)


def skip_header_tags(frame: memoryview, position: int) -> int:
    """Where the body of a flexible request starts."""
    try:
        if frame[position] == 0:
            return position + 1
        count, position = read_uvarint(frame, position)
        if count > TAGS_MAX:
            raise MalformedMessage(f"{count} tags in a header")
        for _ in range(count):
            _, position = read_uvarint(frame, position)
            size, position = read_uvarint(frame, position)
            position += size
    except IndexError:
        raise MalformedMessage("header tags run past the end") from None
    return position


def kept(frame: memoryview) -> memoryview:
    """The request for longer than the call that brought it, and not necessarily a copy: that of the largest ones would
    take tens of milliseconds."""
    return frame if len(frame) > SHARED_BUFFER_BYTES else memoryview(bytearray(frame))


@cache
def flexible_from(request_name: str) -> int:
    """The first version with tagged fields; larger than any version if there is none."""
    low, high = version_range(definition(request_name)["flexible"])
    return low if low <= high else 32767


def response_prefix(body_size: int, correlation_id: int, flexible_header: bool) -> bytes:
    """Size, correlation id and the (empty) tags of a response."""
    if flexible_header:
        return _RESPONSE.pack(body_size + 5, correlation_id) + b"\x00"
    return _RESPONSE.pack(body_size + 4, correlation_id)
