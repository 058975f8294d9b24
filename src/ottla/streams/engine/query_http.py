"""Interactive queries over HTTP, as JSON. Read-only; it listens where it is told to, and asks nobody who they are.

    GET /stores                                        the names and kinds of stores
    GET /stores/counts                                 all entries; ?from=KEY&to=KEY&limit=N a part of them
    GET /stores/counts/KEY                             one key; of windows and sessions all, or ?from_ms=...&to_ms=...

A key in an address is text for `serdes.string`, a number for `serdes.integer` and `double`, JSON for everything else.
Answers have `as_of_ms`: all batches that were committed then are in them.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from ottla.common.errors import OttlaError
from ottla.streams import serdes
from ottla.streams.engine.queries import StoreReader
from ottla.streams.record import ValueAndTimestamp
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.topology import Topology
from ottla.streams.windows import FOREVER_MS, Windowed

LIMIT_DEFAULT = 1_000


class QueryServer:
    """Serves until it is closed. `port` 0 takes one that is free."""

    def __init__(self, topology: Topology, reader: StoreReader, host: str, port: int) -> None:
        answers = _Answers(topology, reader)

        class Handler(_Handler):
            answer = staticmethod(answers.answer)

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise OttlaError(f"cannot listen on {host}:{port}: {error.strerror}.") from None
        self._server.daemon_threads = True
        self._reader = reader
        self._thread = threading.Thread(target=self._server.serve_forever, name="queries", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._reader.close()


class _NotFound(Exception):
    pass


class _Handler(BaseHTTPRequestHandler):
    answer: Callable[[str], Any]

    def do_GET(self) -> None:
        try:
            status, body = HTTPStatus.OK, self.answer(self.path)
        except _NotFound as error:
            status, body = HTTPStatus.NOT_FOUND, {"error": str(error)}
        except ValueError as error:
            status, body = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except (OttlaError, OSError) as error:
            status, body = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
        data = json.dumps(body, default=_as_json).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Not on the screen, where the live line is."""


class _Answers:
    def __init__(self, topology: Topology, reader: StoreReader) -> None:
        self._topology = topology
        self._reader = reader

    def answer(self, path: str) -> Any:
        parts = urlsplit(path)
        names = [unquote(part) for part in parts.path.strip("/").split("/")]
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if names == ["stores"]:
            return {name: self._topology.stores[name].kind.value for name in self._reader.names}
        if names[0] != "stores" or len(names) > 3:
            raise _NotFound("ask for /stores, /stores/NAME or /stores/NAME/KEY")
        if names[1] not in self._reader.names:
            raise _NotFound(f"there is no store '{names[1]}': /stores names those that are there")
        spec = self._topology.stores[names[1]]
        if len(names) == 2:
            return self._entries(spec, options)
        return self._one(spec, _key(spec, names[2]), options)

    def _entries(self, spec: StoreSpec, options: dict[str, str]) -> Any:
        limit = _number(options, "limit", LIMIT_DEFAULT)
        if spec.kind in (StoreKind.WINDOW, StoreKind.SESSION):
            found, as_of_ms = self._reader.look(spec.name, lambda store: iter(list(store.all())))
        else:
            low, high = (_key(spec, options[name]) if name in options else None for name in ("from", "to"))
            found, as_of_ms = self._reader.look(spec.name, lambda store: iter(list(store.range(low, high))))
        entries = [{"key": _shown_key(key), **_shown(value)} for key, value in found[:limit]]
        return {"as_of_ms": as_of_ms, "entries": entries, "has_more": len(found) > limit}

    def _one(self, spec: StoreSpec, key: Any, options: dict[str, str]) -> Any:
        first, last = _number(options, "from_ms", 0), _number(options, "to_ms", FOREVER_MS)
        if spec.kind is StoreKind.WINDOW:
            found, as_of_ms = self._reader.look(spec.name, lambda store: iter(list(store.fetch(key, first, last))))
            windows = [{"start_ms": start, **_shown(value)} for start, value in found]
            return {"as_of_ms": as_of_ms, "key": key, "windows": windows}
        if spec.kind is StoreKind.SESSION:
            found, as_of_ms = self._reader.look(
                spec.name, lambda store: iter(list(store.find_sessions(key, first, last)))
            )
            sessions = [{"start_ms": at.window.start, "end_ms": at.window.end, **_shown(value)} for at, value in found]
            return {"as_of_ms": as_of_ms, "key": key, "sessions": sessions}
        value, as_of_ms = self._reader.look(spec.name, lambda store: store.get(key))
        if value is None:
            raise _NotFound(f"the store '{spec.name}' has no such key")
        return {"as_of_ms": as_of_ms, "key": key, **_shown(value)}


def _key(spec: StoreSpec, text: str) -> Any:
    if spec.key_serde is serdes.string:
        return text
    if spec.key_serde is serdes.raw:
        return text.encode()
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError(f"the keys of '{spec.name}' are not text: write this one as JSON, not {text!r}") from None


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{name} is a whole number, not {text!r}")
    return int(text)


def _shown_key(key: Any) -> Any:
    if isinstance(key, Windowed):
        return {"key": key.key, "start_ms": key.window.start, "end_ms": key.window.end}
    return key


def _shown(value: Any) -> dict[str, Any]:
    if isinstance(value, ValueAndTimestamp):
        return {"value": value.value, "timestamp_ms": value.timestamp}
    return {"value": value}


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return str(value)
