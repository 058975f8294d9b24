"""Where an answer says for how long its client is throttled: read it, or write it into an answer that is encoded."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.broker.apis import APIS
from ottla.protocol import codec
from ottla.protocol.definitions import is_within
from ottla.protocol.framing import API_VERSIONS, flexible_from, response_prefix

if TYPE_CHECKING:
    from ottla.server.client_end import Answer

_FIELD = "throttle_time_ms"
_INT32 = struct.Struct(">i")
# Size and correlation id.
_PREFIX_BYTES = 8
_NOT_FIRST, _NOT_THERE = -1, -2


@cache
def _place(key: int, version: int) -> int:
    """How far from the beginning of an answer, its size included."""
    name = APIS[key].name
    fields = codec.definition(f"{name}Response")["fields"]
    known = [field["name"] for field in fields if is_within(version, field["versions"])]
    if _FIELD not in known:
        return _NOT_THERE
    return _PREFIX_BYTES + _has_tags(key, version) if known[0] == _FIELD else _NOT_FIRST


def _has_tags(key: int, version: int) -> bool:
    return version >= flexible_from(f"{APIS[key].name}Request") and key != API_VERSIONS


def throttle_time_of(answer: Answer, key: int, version: int) -> int:
    """Of an API that says so first of all."""
    place = _place(key, version)
    if not answer or place < 0:
        return 0
    part, place = _part(answer, place)
    return _INT32.unpack_from(_bytes_of(answer, part), place)[0]  # type: ignore[no-any-return]


def with_throttle_time(answer: Answer, key: int, version: int, ms: int) -> Answer:
    """The same answer; where its version has no room for it, it stays as it is."""
    place = _place(key, version)
    if not answer or place == _NOT_THERE:
        return answer
    if place == _NOT_FIRST:
        assert isinstance(answer, (bytes, bytearray))
        return _encoded_again(answer, key, version, ms)
    part, place = _part(answer, place)
    changed = bytearray(_bytes_of(answer, part))
    _INT32.pack_into(changed, place, ms)
    if isinstance(answer, list):
        return [*answer[:part], changed, *answer[part + 1 :]]
    return bytes(changed)


def _part(answer: Any, place: int) -> tuple[int, int]:
    """Which part of it, and where in that: a Fetch has its prefix by itself."""
    if isinstance(answer, list) and len(answer[0]) <= place:
        return 1, place - len(answer[0])
    return 0, place


def _bytes_of(answer: Any, part: int) -> Any:
    return answer[part] if isinstance(answer, list) else answer


def _encoded_again(answer: bytes | bytearray, key: int, version: int, ms: int) -> bytes:
    """Whoever is throttled is not in a hurry."""
    has_tags = _has_tags(key, version)
    message = codec.decode(f"{APIS[key].name}Response", version, memoryview(answer), _PREFIX_BYTES + has_tags)
    message.throttle_time_ms = ms
    body = codec.encode(message, version)
    (correlation_id,) = _INT32.unpack_from(answer, 4)
    return response_prefix(len(body), correlation_id, has_tags) + body
