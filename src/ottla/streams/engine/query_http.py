"""Interactive queries over HTTP, as JSON. Read-only.

    GET /stores                                        the names and kinds of stores
    GET /stores/counts                                 all entries; ?from=KEY&to=KEY&limit=N a part of them
    GET /stores/counts/KEY                             one key; of windows and sessions all, or ?from_ms=...&to_ms=...

A key in an address is text for `serdes.string`, base64 for `serdes.raw`, as answers show it, JSON for everything else.
Answers have `as_of_ms`: all batches that were committed then are in them.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address
from ottla.exposition.endpoint import Endpoint, Page, Query, Reply, json_reply
from ottla.exposition.protection import OPEN, Protection
from ottla.exposition.threaded import ThreadedEndpoint
from ottla.streams import serdes
from ottla.streams.engine.queries import StoreReader
from ottla.streams.record import ValueAndTimestamp
from ottla.streams.serdes import ModelSerde
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.topology import Topology
from ottla.streams.windows import FOREVER_MS, Windowed

LIMIT_DEFAULT, LIMIT_MAX = 1_000, 10_000
_DIGITS_MAX = 19
_STORES = "/stores"


@contextmanager
def serving_queries(
    topology: Topology, reader: StoreReader, address: str, protection: Protection = OPEN
) -> Iterator[str]:
    """Where they are served, until the block ends; then the reader is closed as well. Port 0 takes one that is free."""
    answers = _Answers(topology, reader)

    def page_at(path: str) -> Page | None:
        return answers.page(path) if path.startswith(f"{_STORES}/") else None

    endpoint = Endpoint({_STORES: answers.page(_STORES)}, page_at, protection)
    endpoint.bind(*parse_address(address, what="--http"), what="--http")
    with reader, ThreadedEndpoint(endpoint):
        yield endpoint.url


class _NotFound(Exception):
    pass


class _BadRequest(Exception):
    pass


class _Answers:
    def __init__(self, topology: Topology, reader: StoreReader) -> None:
        self._topology = topology
        self._reader = reader

    def page(self, path: str) -> Page:
        async def reply(options: Query) -> Reply:
            # A look may have to read a changelog first: meanwhile others are answered.
            return await asyncio.to_thread(self._reply, path, options)

        return reply

    def _reply(self, path: str, options: Query) -> Reply:
        try:
            return json_reply(_plain(self._answer(path, options)))
        except _NotFound as error:
            return json_reply({"error": str(error)}, 404)
        except _BadRequest as error:
            return json_reply({"error": str(error)}, 400)
        except (OttlaError, OSError) as error:
            return json_reply({"error": str(error)}, 503)

    def _answer(self, path: str, options: Query) -> Any:
        # Of the store, and of a key, which may have slashes.
        names = [name for name in path.removeprefix(_STORES).split("/", 2) if name]
        if not names:
            return {name: self._topology.stores[name].kind.value for name in self._reader.names}
        if names[0] not in self._reader.names:
            raise _NotFound(f"there is no store '{names[0]}': /stores names those that are there")
        spec = self._topology.stores[names[0]]
        return self._entries(spec, options) if len(names) == 1 else self._one(spec, names[1], options)

    def _entries(self, spec: StoreSpec, options: Query) -> Any:
        limit = _limit(options)
        low, high = options.get("from"), options.get("to")

        def entries(store: Any) -> Any:
            if spec.kind is StoreKind.WINDOW:
                found = store.fetch_all(*_times(options))
            elif spec.kind is StoreKind.SESSION:
                found = store.all()
            else:
                found = store.range(*(None if text is None else _key(store, text) for text in (low, high)))
            return islice(found, limit + 1)

        if spec.kind is StoreKind.VERSIONED:
            raise _BadRequest(f"'{spec.name}' is a versioned store: ask for a key, /stores/{spec.name}/KEY")
        found, as_of_ms = self._reader.look(spec.name, entries)
        shown = [{"key": _shown_key(key), **_shown(value)} for key, value in found[:limit]]
        return {"as_of_ms": as_of_ms, "entries": shown, "has_more": len(found) > limit}

    def _one(self, spec: StoreSpec, text: str, options: Query) -> Any:
        limit, (first, last) = _limit(options), _times(options)

        def one(store: Any) -> Any:
            key = _key(store, text)
            if spec.kind is StoreKind.WINDOW:
                return key, list(islice(store.fetch(key, first, last), limit + 1))
            if spec.kind is StoreKind.SESSION:
                return key, list(islice(store.find_sessions(key, first, last), limit + 1))
            return key, store.get(key)

        (key, found), as_of_ms = self._reader.look(spec.name, one)
        answer = {"as_of_ms": as_of_ms, "key": key}
        if spec.kind is StoreKind.WINDOW:
            windows = [{"start_ms": start, **_shown(value)} for start, value in found[:limit]]
            return {**answer, "windows": windows, "has_more": len(found) > limit}
        if spec.kind is StoreKind.SESSION:
            sessions = [
                {"start_ms": at.window.start, "end_ms": at.window.end, **_shown(value)} for at, value in found[:limit]
            ]
            return {**answer, "sessions": sessions, "has_more": len(found) > limit}
        if found is None:
            raise _NotFound(f"the store '{spec.name}' has no such key")
        return {**answer, **_shown(found)}


def _key(store: Any, text: str) -> Any:
    """Raises _BadRequest for what cannot be a key of this store, whatever its serde says about it."""
    serde = store.spec.key_serde
    try:
        if serde is serdes.string:
            key: Any = text
        elif serde is serdes.raw:
            key = base64.b64decode(text.replace(" ", "+"), validate=True)  # a plus in a query is a space
        elif isinstance(serde, ModelSerde):
            key = serde.deserialize("", text.encode())
        else:
            key = json.loads(text)
        if store.key_bytes(key) is None:
            raise ValueError
    except Exception:
        form = "base64" if serde is serdes.raw else "text" if serde is serdes.string else "JSON"
        raise _BadRequest(f"{text[:100]!r} is no key of '{store.name}', whose keys are {serde!r}: as {form}") from None
    return key


def _times(options: Query) -> tuple[int, int]:
    return min(_number(options, "from_ms", 0), FOREVER_MS), min(_number(options, "to_ms", FOREVER_MS), FOREVER_MS)


def _limit(options: Query) -> int:
    return min(_number(options, "limit", LIMIT_DEFAULT), LIMIT_MAX)


def _number(options: Query, name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise _BadRequest(f"{name} is a whole number of at most {_DIGITS_MAX} digits, not {text[:100]!r}")
    return int(text)


def _shown_key(key: Any) -> Any:
    if isinstance(key, Windowed):
        return {"key": key.key, "start_ms": key.window.start, "end_ms": key.window.end}
    return key


def _shown(value: Any) -> dict[str, Any]:
    if isinstance(value, ValueAndTimestamp):
        return {"value": value.value, "timestamp_ms": value.timestamp}
    return {"value": value}


def _plain(value: Any) -> Any:
    """What JSON can say. Bytes in base64; what is no number, and keys that are no text, as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name if isinstance(name, str) else str(_plain(name)): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return str(value)
