"""TLS to ZooKeeper: the suite through it, and who is not let in."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.metastore.port import Create, Node
from ottla.metastore.zookeeper import ZookeeperOptions, open_zookeeper
from tests.metastore.conformance import OpenStore, StoreConformance
from tests.metastore.waiting import until
from tests.support.certificates import Certificates
from tests.support.process import free_ports
from tests.support.proxy import Proxy
from tests.support.zookeeper import Zookeeper, running

NETTY = "org.apache.zookeeper.server.NettyServerCnxnFactory"


class TlsServer:
    def __init__(self, certificates: Certificates, port: int) -> None:
        self.certificates = certificates
        self.port = port

    def options(self, chroot: str, **more: Any) -> ZookeeperOptions:
        given: dict[str, Any] = {
            "servers": f"localhost:{self.port}",
            "chroot": chroot,
            "session_timeout_ms": 30_000,
            "is_tls": True,
            "identity": str(self.certificates.issue("broker-1")),
            "trusted": str(self.certificates.ca),
        }
        return ZookeeperOptions(**{**given, **more})


class GatheringProxy(Proxy):
    """Ends TLS before ZooKeeper, and hands on answers several at a time."""

    def __init__(self, tls: ssl.SSLContext, target: int) -> None:
        super().__init__(tls=tls)
        self.target = target
        # Answers that came behind another one.
        self.gathered = 0

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]) -> None:
        while piece := await reader.read(65536):
            await asyncio.sleep(0.02)
            piece += await _what_is_there(reader)
            self.gathered += _frames(piece) - 1
            writer.write(piece)
            await writer.drain()


async def _what_is_there(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(65536), 0.001)
    except TimeoutError:
        return b""


def _frames(piece: bytes) -> int:
    """Answers of a test are short and whole."""
    number = 0
    while piece:
        number += 1
        piece = piece[4 + int.from_bytes(piece[:4], "big") :]
    return number


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[TlsServer]:
    folder, port = tmp_path_factory.mktemp("zookeeper-tls"), free_ports(1)[0]
    settings = {
        "serverCnxnFactory": NETTY,
        "secureClientPort": str(port),
        "secureClientPortAddress": "0.0.0.0",
        "ssl.keyStore.location": str(certificates.issue("localhost", "127.0.0.1")),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(certificates.ca),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
    }
    with running(Zookeeper(folder / "server", settings)):
        yield TlsServer(certificates, port)


class TestZookeeperOverTls(StoreConformance):
    @pytest.fixture
    def open_store(self, server: TlsServer, chroot: str) -> OpenStore:
        return lambda: open_zookeeper(server.options(chroot))

    def settle(self, done: Callable[[], bool]) -> None:
        until(done)


def test_answers_that_come_together_are_all_read(zookeeper: Zookeeper, chroot: str, certificates: Certificates) -> None:
    """A TLS proxy may put several of them into one record."""
    with GatheringProxy(certificates.server(certificates.issue("127.0.0.1")), zookeeper.port) as proxy:
        options = zookeeper.options(
            chroot, servers=proxy.address, session_timeout_ms=60_000, is_tls=True, trusted=str(certificates.ca)
        )
        store = open_zookeeper(options)
        paths = [f"/{number}" for number in range(200)]
        store.multi([Create(path) for path in paths])
        with ThreadPoolExecutor(1) as threads:
            # kazoo would look again after a third of the session.
            assert threads.submit(store.get_many, paths).result(15) == [Node(b"", 0)] * 200
        assert proxy.gathered > 10
        store.close()


@pytest.mark.parametrize(
    ("host", "changes", "expected"),
    [
        ("localhost", {"identity": None}, "(bad|required) certificate|certificate required"),
        ("localhost", {"trusted": None}, "certificate verify failed"),
        ("localhost", {"is_tls": False}, "cannot reach"),
        ("127.0.0.2", {}, "not valid for '127.0.0.2'"),
    ],
)
def test_who_is_not_let_in_is_told_why(
    server: TlsServer, chroot: str, host: str, changes: dict[str, Any], expected: str
) -> None:
    options = server.options(chroot, servers=f"{host}:{server.port}", connection_timeout_ms=3_000, **changes)
    with pytest.raises(OttlaError, match=expected):
        open_zookeeper(options)


def test_the_name_of_the_server_need_not_be_in_its_certificate(server: TlsServer, chroot: str) -> None:
    open_zookeeper(server.options(chroot, servers=f"127.0.0.2:{server.port}", is_host_checked=False)).close()


def test_a_key_may_have_a_password(server: TlsServer, chroot: str) -> None:
    identity = str(server.certificates.issue("broker-2", password="secret"))
    open_zookeeper(server.options(chroot, identity=identity, identity_password="secret")).close()
