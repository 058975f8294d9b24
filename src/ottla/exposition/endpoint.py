"""A tiny HTTP endpoint: GET of a few fixed paths, on the event loop that runs it.

It serves scrapers and health checks, so it speaks as little HTTP/1.1 as they need: a head within limits of size and
time, no body, one answer at a time, keep-alive. Whoever asks for more than that is answered 4xx and disconnected.

With logins (`protection.py`) everything but health asks for one: probes have none.

It runs beside a broker, so nobody may hold what it has for long: an answer that is not taken in time is thrown away
with its connection, and connections that say nothing make room for those that do.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from ottla.common.errors import OttlaError
from ottla.exposition.protection import OPEN, Protection

log = logging.getLogger("ottla.exposition")

HEAD_BYTES_MAX = 16 * 1024
HEAD_S_MAX = 10.0
SEND_S_MAX = 30.0
IDLE_S_MAX = 120.0
CONNECTIONS_MAX = 64
_HEALTH = "/health/"

_PHRASES = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Reply(NamedTuple):
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


# What was asked beside the path: its query, one value for each name.
Query = Mapping[str, str]
Page = Callable[[Query], Awaitable[Reply]]
# Paths that are not fixed: the whole path -> a page, or None.
FindPage = Callable[[str], Page | None]


def json_reply(value: object, status: int = 200) -> Reply:
    return Reply(json.dumps(value, indent=2).encode() + b"\n", "application/json", status)


class Endpoint:
    """`bind`, then `await start()`, then `await stop()`. The port is known before anybody is served."""

    def __init__(
        self, pages: Mapping[str, Page], find_page: FindPage | None = None, protection: Protection = OPEN
    ) -> None:
        self._tls, self._logins = protection
        self._pages = dict(pages)
        self._find_page = find_page
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        # Those of them that wait for a request, the longest first.
        self._silent: dict[asyncio.Task[None], None] = {}
        self.address = ("", 0)

    def bind(self, host: str, port: int, *, what: str) -> None:
        """Raises OttlaError; `what` is the setting or flag that says where."""
        try:
            infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, address = sorted(infos, key=lambda info: info[0] != socket.AF_INET)[0]
            listener = socket.socket(family, kind, protocol)
        except OSError as error:
            raise OttlaError(f"cannot listen on {host}:{port} ({what}): {error.strerror or error}.") from None
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            listener.close()
            raise OttlaError(
                f"cannot listen on {host}:{port} ({what}): {error.strerror or error}; choose another port."
            ) from None
        listener.setblocking(False)
        self._listener = listener
        self.address = (host or "localhost", listener.getsockname()[1])

    @property
    def url(self) -> str:
        host, port = self.address
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def start(self) -> None:
        assert self._listener is not None, "bind first"
        self._server = await asyncio.start_server(
            self._serve,
            sock=self._listener,
            limit=HEAD_BYTES_MAX,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HEAD_S_MAX,
        )

    async def stop(self) -> None:
        if self._server is None:
            if self._listener is not None:
                self._listener.close()
            return
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    # --- a connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        # Nothing is left to be sent later: what a client does not take is noticed while it is waited for.
        # Not 0: with TLS asyncio takes an empty buffer for a full one then, and never says that it is empty.
        writer.transport.set_write_buffer_limits(high=1, low=0)
        try:
            if len(self._connections) > CONNECTIONS_MAX and not self._end_longest_silent():
                await _send(writer, Reply(b"too many connections\n", status=503), keep=False)
                return
            while await self._serve_one(task, reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # it has gone, or we are stopping
        finally:
            self._connections.discard(task)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()  # to close it would wait for its client, for ever if need be
            else:
                writer.close()

    def _end_longest_silent(self) -> bool:
        """Whether there was one."""
        longest = next(iter(self._silent), None)
        if longest is None:
            return False
        del self._silent[longest]
        longest.cancel()
        return True

    async def _serve_one(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        try:
            self._silent[task] = None
            try:
                async with asyncio.timeout(IDLE_S_MAX):
                    first = await reader.readexactly(1)
            finally:
                self._silent.pop(task, None)
            async with asyncio.timeout(HEAD_S_MAX):
                head = first + await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return False
        except asyncio.LimitOverrunError:
            await _send(writer, Reply(b"the head of the request is too long\n", status=431), keep=False)
            return False
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        pairs = [
            (name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])
        ]
        headers = dict(pairs)
        # Proxies may see another line in it, and another body.
        is_doubtful = any("\n" in line or "\r" in line for line in lines)
        if is_doubtful or len(words) != 3 or not words[2].startswith("HTTP/1."):
            await _send(writer, Reply(b"not a request of HTTP/1.1\n", status=400), keep=False)
            return False
        method, target, version = words
        has_body = any(name == "transfer-encoding" or (name == "content-length" and it != "0") for name, it in pairs)
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close" and not has_body
        if method not in ("GET", "HEAD"):
            reply = Reply(b"only GET is served here\n", status=405)
            keep = False
        elif not await self._is_let_in(target, headers.get("authorization"), _address_of(writer)):
            reply = Reply(b"log in with a user name and a password\n", status=401)
        else:
            reply = await self._answer(target)
        await _send(writer, reply, keep=keep, is_head=method == "HEAD")
        return keep

    async def _is_let_in(self, target: str, authorization: str | None, address: str) -> bool:
        if self._logins is None or target.startswith(_HEALTH):
            return True
        if authorization is None:
            return False
        return await self._logins.name(authorization.encode("latin-1"), address) is not None

    async def _answer(self, target: str) -> Reply:
        path, _, query = target.partition("?")
        path = unquote(path)
        page = self._pages.get(path)
        if page is None and self._find_page is not None:
            page = self._find_page(path)
        if page is None:
            known = ", ".join(sorted(self._pages))
            return Reply(f"there is nothing at this path; there is {known}\n".encode(), status=404)
        try:
            return await page(dict(parse_qsl(query)))
        except Exception:
            log.exception("a page could not be made", extra={"path": path})
            return Reply(b"this page could not be made; the log says why\n", status=500)


def _address_of(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if peer else ""


async def _send(writer: asyncio.StreamWriter, reply: Reply, *, keep: bool, is_head: bool = False) -> None:
    lines = [
        f"HTTP/1.1 {reply.status} {_PHRASES[reply.status]}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        f"Connection: {'keep-alive' if keep else 'close'}",
    ]
    if reply.status == 401:
        lines.append('WWW-Authenticate: Basic realm="ottla"')
    writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if is_head else reply.body))
    async with asyncio.timeout(SEND_S_MAX):
        await writer.drain()
