"""HTTPS with files that are renewed while it is served, by both of our HTTP servers: uvicorn's and that of metrics."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from ottla.common import renewed_tls
from ottla.common.certificates import Authority
from ottla.common.errors import OttlaError
from ottla.exposition.endpoint import Endpoint
from ottla.exposition.protection import protection
from ottla.http.server import HttpServer

AUTHORITY = Authority.new("test", 1)


def issue(path: Path) -> bytes:
    issued = AUTHORITY.issue("localhost", 1, hosts=["127.0.0.1"])
    path.write_text(issued.pem)
    return ssl.PEM_cert_to_DER_cert(issued.certificate_pem.decode())


def http_server(identity: Path) -> HttpServer:
    return HttpServer(lambda status, sentence: PlainTextResponse(sentence, status), certificate=str(identity))


@asynccontextmanager
async def served_by_uvicorn(identity: Path) -> AsyncIterator[int]:
    http = http_server(identity)
    port = http.bind("127.0.0.1", 0)
    await http.start(PlainTextResponse("here"))
    yield port
    await http.stop()


@asynccontextmanager
async def served_by_metrics(identity: Path) -> AsyncIterator[int]:
    endpoint = Endpoint({}, protection=protection(str(identity), None, None))
    endpoint.bind("127.0.0.1", 0, what="here")
    await endpoint.start()
    yield endpoint.address[1]
    await endpoint.stop()


async def shown(port: int) -> bytes:
    context = ssl.create_default_context(cadata=AUTHORITY.issued.certificate_pem.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1")
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    assert isinstance(certificate, bytes)
    return certificate


@pytest.mark.parametrize("served", [served_by_uvicorn, served_by_metrics])
async def test_a_renewed_certificate_is_shown_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: Callable[[Path], AbstractAsyncContextManager[int]]
) -> None:
    monkeypatch.setattr(renewed_tls, "_LOOK_AGAIN_MS", 0)
    identity = tmp_path / "identity.pem"
    first = issue(identity)
    async with served(identity) as port:
        assert await shown(port) == first
        second = issue(identity)
        assert await shown(port) == second != first
        identity.write_text("nothing")
        assert await shown(port) == second


async def test_a_certificate_that_cannot_be_used_is_told_of_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    http = http_server(tmp_path / "none.pem")
    http.bind("127.0.0.1", 0)
    try:
        with pytest.raises(OttlaError, match="are no certificate with its key"):
            await http.start(PlainTextResponse("here"))
    finally:
        http.release()
