"""What a client that does not read may hold: nothing, after a while."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount

from ottla.http import connection as module
from ottla.http.server import HttpServer


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


class Served:
    """As much as anybody takes."""

    def __init__(self) -> None:
        self.ended = False

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(1000):
                yield b"x" * 100_000
        finally:
            self.ended = True

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        await StreamingResponse(self.pieces())(Request(scope).scope, receive, send)  # type: ignore[arg-type]


async def _client(port: int, room: int = 4096) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    return client


async def test_an_answer_that_nobody_reads_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEND_S_MAX", 0.3)
    served, http = Served(), HttpServer(lambda status, sentence: PlainTextResponse(sentence, status))
    port = http.bind("127.0.0.1", 0)
    await http.start(served)
    before = len(os.listdir("/dev/fd"))
    client = await _client(port)
    await _until(lambda: served.ended)
    await _until(lambda: len(os.listdir("/dev/fd")) == before + 1)  # the client's own
    client.close()
    await http.stop()


async def test_a_client_that_reads_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEND_S_MAX", 0.3)
    # All in one piece: it takes many times as long as an answer may stand still.
    body = b"x" * 8_000_000

    async def served(scope: object, receive: object, send: object) -> None:
        await PlainTextResponse(body)(Request(scope).scope, receive, send)  # type: ignore[arg-type]

    http = HttpServer(lambda status, sentence: PlainTextResponse(sentence, status))
    port = http.bind("127.0.0.1", 0)
    await http.start(served)
    client = await _client(port, 65536)
    loop = asyncio.get_running_loop()
    got = 0
    while got < len(body):
        piece = await loop.sock_recv(client, 400_000)
        assert piece, f"it ended after {got} bytes"
        got += len(piece)
        await asyncio.sleep(0.01)
    client.close()
    await http.stop()


async def test_who_opens_thousands_and_says_nothing_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor who begins to say something: whoever was waited for longest goes."""
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 10)
    http = HttpServer(lambda status, sentence: PlainTextResponse(sentence, status))
    port = http.bind("127.0.0.1", 0)
    await http.start(PlainTextResponse("here"))
    loop = asyncio.get_running_loop()
    beginnings = [b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nnot", b""]
    silent = []
    for beginning in beginnings * 10:
        client = socket.create_connection(("127.0.0.1", port))
        client.setblocking(False)
        await loop.sock_sendall(client, beginning)
        silent.append(client)
        await asyncio.sleep(0)
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"here")
        writer.close()
    for client in silent[:20]:
        with contextlib.suppress(ConnectionResetError):
            while await asyncio.wait_for(loop.sock_recv(client, 1000), 30):
                pass
    for client in silent:
        client.close()
    await http.stop()


async def test_a_client_that_leaves_amid_its_request_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever hangs up a thousand times would fill the log."""
    ended = asyncio.Event()

    async def served(scope: object, receive: object, send: object) -> None:
        try:
            async for _ in Request(scope, receive).stream():  # type: ignore[arg-type]
                pass
        finally:
            ended.set()

    http = HttpServer(lambda status, sentence: PlainTextResponse(sentence, status))
    port = http.bind("127.0.0.1", 0)
    await http.start(Starlette(routes=[Mount("/", served)]))
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nonly this")
    await asyncio.sleep(0.05)
    client.close()
    async with asyncio.timeout(60):
        await ended.wait()
    await http.stop()
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
