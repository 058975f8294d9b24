"""A server's certificate, its key and whom it trusts, replaced while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ottla.common import renewed_tls
from ottla.common.certificates import Authority
from ottla.common.errors import OttlaError
from ottla.common.renewed_tls import RenewedContext, from_files, to_others

OLD, NEW = Authority.new("old", 1), Authority.new("new", 1)
LOG = logging.getLogger("ottla.test")


def shown(server: ssl.SSLContext, name: str, *, client: Path | None = None) -> bytes | None:
    """The certificate that a client sees; None where the server does not believe the client. Python's clients name a
    host in their first message, and no address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for authority in (OLD, NEW):
        context.load_verify_locations(cadata=authority.issued.certificate_pem.decode())
    if client is not None:
        context.load_cert_chain(client)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = context.wrap_bio(to_client, to_server, server_hostname=name)
    done: set[ssl.SSLObject] = set()
    while len(done) < 2:
        for link in (theirs, ours):
            try:
                link.do_handshake()
                done.add(link)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                assert link is ours
                return None
    return theirs.getpeercert(binary_form=True)


class Files:
    def __init__(self, folder: Path) -> None:
        self.identity, self.ca, self.client = (folder / f"{name}.pem" for name in ("identity", "ca", "client"))
        self.of(OLD)

    def of(self, authority: Authority) -> bytes:
        issued = authority.issue("localhost", 1, hosts=["localhost", "127.0.0.1"])
        self.identity.write_text(issued.pem)
        self.ca.write_bytes(authority.issued.certificate_pem)
        self.client.write_text(authority.issue("ada", 1).pem)
        return ssl.PEM_cert_to_DER_cert(issued.certificate_pem.decode())


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    monkeypatch.setattr(renewed_tls, "_LOOK_AGAIN_MS", 0)
    yield Files(tmp_path)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_the_next_client_is_shown_what_is_there_then(files: Files, name: str) -> None:
    server = from_files(str(files.identity), log=LOG).served()
    for authority in (NEW, OLD, NEW):
        expected = files.of(authority)
        assert shown(server, name) == expected == shown(server, name)


def test_the_next_client_is_believed_by_those_who_are_trusted_then(files: Files) -> None:
    server = from_files(str(files.identity), client_ca=str(files.ca), requires_client=True, log=LOG).served()
    assert shown(server, "localhost", client=files.client)
    before = files.client.read_text()
    files.of(NEW)
    assert shown(server, "localhost", client=files.client)
    files.client.write_text(before)
    assert shown(server, "localhost", client=files.client) is None


def test_what_cannot_be_used_is_told_of_once_and_changes_nothing(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    server = from_files(str(files.identity), log=LOG).served()
    before = shown(server, "localhost")
    good = files.identity.read_text()
    for broken in (good[: len(good) // 2], "", OLD.issue("x", 1).pem.partition("-----BEGIN CERT")[0]):
        caplog.clear()
        files.identity.write_text(broken)
        assert shown(server, "localhost") == before == shown(server, "localhost")
        assert len(caplog.records) == 1 and "keeping the certificate as it was" in caplog.text
    files.identity.unlink()
    assert shown(server, "localhost") == before
    assert files.of(NEW) == shown(server, "localhost")


def test_files_are_looked_at_once_a_second_at_most() -> None:
    looks, now_ms = 0, 0

    def look() -> tuple[renewed_tls.FileState, ...]:
        nonlocal looks
        looks += 1
        return ()

    context = RenewedContext(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), look, log=LOG, now_ms=lambda: now_ms)
    for now_ms in range(0, 3_000, 10):  # noqa: B007 - it is what the clock says
        context.now()
    assert looks == 3


@pytest.mark.parametrize(
    ("name", "client_ca", "said"),
    [("nowhere", None, "cannot read"), ("ca", None, "are no certificate with its key"), ("identity", "none", "as PEM")],
)
def test_what_cannot_be_used_at_the_start_is_a_sentence(
    files: Files, tmp_path: Path, name: str, client_ca: str | None, said: str
) -> None:
    (tmp_path / "none").write_text("nothing")
    with pytest.raises(OttlaError, match=said):
        from_files(str(tmp_path / f"{name}.pem"), client_ca=client_ca and str(tmp_path / client_ca), log=LOG)


async def test_who_asks_others_shows_them_what_is_there_then(files: Files) -> None:
    """By httpx, as instances of the registry ask one another."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusting.load_cert_chain(files.identity)
    for authority in (OLD, NEW):
        trusting.load_verify_locations(cadata=authority.issued.certificate_pem.decode())
    trusting.verify_mode = ssl.CERT_REQUIRED
    seen: list[bytes | None] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=trusting)
    url = f"https://localhost:{listening.sockets[0].getsockname()[1]}"
    shows = to_others(str(files.ca), str(files.client), log=LOG).served()
    async with listening, httpx.AsyncClient(verify=shows, trust_env=False) as client:
        assert (await client.get(url)).status_code == 204
        files.client.write_text(NEW.issue("ada", 1).pem)
        assert (await client.get(url)).status_code == 204
        assert len(set(seen)) == len(seen) == 2
        files.ca.write_bytes(NEW.issued.certificate_pem)
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(url)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_of_before_does_not_outlive_who_vouched_for_the_client(
    files: Files, version: ssl.TLSVersion
) -> None:
    """TLS resumes a session without looking at a certificate again: with those of the authority that is gone, too."""
    server = from_files(str(files.identity), client_ca=str(files.ca), requires_client=True, log=LOG).served()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(await reader.readline())
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server)
    port = listening.sockets[0].getsockname()[1]
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.minimum_version = client.maximum_version = version
    for authority in (OLD, NEW):
        client.load_verify_locations(cadata=authority.issued.certificate_pem.decode())
    client.load_cert_chain(files.client)

    def ask(session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        plain = socket.create_connection(("127.0.0.1", port), 30)
        with client.wrap_socket(plain, server_hostname="localhost", session=session) as link:
            link.sendall(b"hello\n")
            assert link.recv(100) == b"hello\n"
            return link.session

    async with listening:
        before = await asyncio.to_thread(ask, None)
        assert await asyncio.to_thread(ask, before)
        files.of(NEW)
        with pytest.raises((OSError, AssertionError)):
            await asyncio.to_thread(ask, before)
