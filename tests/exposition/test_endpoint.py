"""The tiny HTTP endpoint: what it serves, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from ottla.common.errors import OttlaError
from ottla.exposition import endpoint as module
from ottla.exposition.address import consecutive, parse_address
from ottla.exposition.endpoint import Endpoint, Query, Reply, json_reply


async def _hello(query: Query) -> Reply:
    return json_reply({"hello": dict(query)})


async def _broken(_: Query) -> Reply:
    raise ValueError("on purpose")


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    served = Endpoint({"/hello": _hello, "/broken": _broken})
    served.bind("127.0.0.1", 0, what="a test")
    await served.start()
    yield served
    await served.stop()


async def _asked(endpoint: Endpoint, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*endpoint.address)
    writer.write(request)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


async def test_a_page_is_served_and_the_connection_goes_on(endpoint: Endpoint) -> None:
    answer = await _asked(endpoint, b"GET /hello?a=1%202 HTTP/1.1\r\n\r\n" + b"HEAD /hello HTTP/1.0\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b'"a": "1 2"' in answer
    assert answer.endswith(b"Connection: close\r\n\r\n")  # a HEAD has no body


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /nothing HTTP/1.0\r\n\r\n", b"404"),
        (b"GET /broken HTTP/1.0\r\n\r\n", b"500"),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /hello SPDY/9\r\n\r\n", b"400"),
        (b"GET /hello HTTP/1.1\r\nx: " + b"y" * 2 * module.HEAD_BYTES_MAX, b"431"),
    ],
)
async def test_what_is_wrong_is_answered_and_ends_the_connection(
    endpoint: Endpoint, request_text: bytes, status: bytes
) -> None:
    assert (await _asked(endpoint, request_text)).startswith(b"HTTP/1.1 " + status)


async def test_a_client_that_never_ends_its_request_is_left(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEAD_S_MAX", 0.05)
    assert await _asked(endpoint, b"GET /hel") == b""


@pytest.mark.parametrize("body_bytes", [60_000, 8_000_000])
async def test_a_client_that_never_reads_its_answers_is_left(monkeypatch: pytest.MonkeyPatch, body_bytes: int) -> None:
    """However short they are: a connection that waits for its client is a file descriptor of the broker."""
    monkeypatch.setattr(module, "SEND_S_MAX", 0.2)

    async def long_page(_: Query) -> Reply:
        return Reply(b"x" * body_bytes)

    served = Endpoint({"/long": long_page})
    served.bind("127.0.0.1", 0, what="a test")
    await served.start()
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        before = len(os.listdir("/dev/fd"))
        await loop.sock_connect(client, served.address)
        await loop.sock_sendall(client, b"GET /long HTTP/1.1\r\n\r\n" * 200)
        await _until(lambda: len(os.listdir("/dev/fd")) > before)
        await _until(lambda: len(os.listdir("/dev/fd")) == before)
    await served.stop()


async def test_connections_that_say_nothing_do_not_keep_others_out(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 4)
    silent = [await asyncio.open_connection(*endpoint.address) for _ in range(10)]
    assert (await _asked(endpoint, b"GET /hello HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200")
    for _, writer in silent:
        writer.close()


@pytest.mark.parametrize(
    "headers",
    [b"Content-Length: 39\r\nContent-Length: 0\r\n", b"x: y\nContent-Length: 39\r\n", b"content-length: +0\r\n"],
)
async def test_a_body_is_never_taken_for_the_next_request(endpoint: Endpoint, headers: bytes) -> None:
    answer = await _asked(
        endpoint, b"GET /hello HTTP/1.1\r\n" + headers + b"\r\nGET /hello?smuggled=1 HTTP/1.0\r\n\r\n"
    )
    assert answer.count(b"Connection: close") == 1 and b"smuggled" not in answer


async def test_a_port_that_is_taken_is_said_in_a_sentence(endpoint: Endpoint) -> None:
    with pytest.raises(OttlaError, match="choose another port"):
        Endpoint({}).bind(*endpoint.address, what="--metrics")


def test_addresses() -> None:
    assert parse_address("127.0.0.1:80", what="x") == ("127.0.0.1", 80)
    assert parse_address("9404", what="x") == ("127.0.0.1", 9404)
    assert parse_address("[::1]:80", what="x") == ("::1", 80)
    assert parse_address(":80", what="x") == ("", 80)
    assert consecutive("127.0.0.1:9404", 2, what="x") == "127.0.0.1:9406"
    assert consecutive("[::1]:0", 2, what="x") == "[::1]:0"
    for wrong in ("host", "host:port", "h:99999", "a b:80"):
        with pytest.raises(OttlaError, match="expected HOST:PORT"):
            parse_address(wrong, what="x")
