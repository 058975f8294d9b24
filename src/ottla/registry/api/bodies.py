"""The bodies of requests on their way in, and what they may cost before anybody knows what is in them.

Whoever sends is not trusted: a body has a size and a time, and what all large ones hold together while they come has an
end. Small ones are always taken, so that who fills that up stands in nobody's way but that of others with large ones.

Nearly all of a large body is the text of its schema, which stays one text until it is known to fit. What is around it
becomes objects, which take many times their bytes, and all others wait until they are made.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from starlette.requests import Request

from ottla.common.schemas import no_constant
from ottla.registry import errors
from ottla.registry.errors import RegistryError
from ottla.registry.settings import RegistrySettings

# So much of each body is not counted.
_SMALL_BYTES = 64 * 1024
# Metadata, rules and references, beside the schema.
_AROUND_MAX = 256 * 1024
_LOOKS_MAX = 16
_DECODER = json.JSONDecoder()
_SCHEMA = re.compile(r'"schema"\s*:\s*"')


class Bodies:
    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        # What large ones hold that are not complete.
        self._held = 0

    async def receive(self, request: Request) -> bytes:
        limit = self._settings.request_bytes_max
        stated = request.headers.get("content-length", "0")
        if stated.isdigit() and int(stated) > limit:
            raise errors.too_large(f"The request has more than {limit} bytes")
        received = bytearray()
        counted = 0
        try:
            async with asyncio.timeout(self._settings.receive_timeout_s):
                async for chunk in request.stream():
                    received += chunk
                    if len(received) > limit:
                        raise errors.too_large(f"The request has more than {limit} bytes")
                    more = max(0, len(received) - _SMALL_BYTES) - counted
                    if self._held + more > self._settings.incomplete_bytes_max:
                        raise RegistryError(503, "HTTP 503 Service Unavailable")
                    counted += more
                    self._held += more
        except TimeoutError:
            raise RegistryError(408, "HTTP 408 Request Timeout") from None
        finally:
            self._held -= counted
        return bytes(received)


def json_object(body: bytes) -> dict[str, Any]:
    """Raises what the API answers."""
    try:
        text = body.decode(json.detect_encoding(body))
        if _size_around_schema(text) > _AROUND_MAX:
            raise errors.too_large(f"Without its schema the request has more than {_AROUND_MAX} characters")
        tree = json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise RegistryError(400, f"The request is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise RegistryError(400, "The request is no JSON object")
    if "\\u" in text and not _is_text(tree):
        raise RegistryError(400, "The request has halves of characters, which are no text")
    return tree


def _size_around_schema(text: str) -> int:
    """Raises ValueError. No match begins within a text: the quote behind the word would end that, and a colon follows
    on no value. Something else of a request may have that name; few things have."""
    size, at = len(text), 0
    for _ in range(_LOOKS_MAX if size > _AROUND_MAX else 0):
        if (found := _SCHEMA.search(text, at)) is None:
            break
        begin = found.end() - 1  # its quote
        _, at = _DECODER.raw_decode(text, begin)
        size -= at - begin
    return size


def _is_text(tree: Any) -> bool:
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
