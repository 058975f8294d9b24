"""Connections between brokers, against a peer that answers as it is told."""

from __future__ import annotations

import asyncio
import errno
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.broker.cluster.socket_peers import SocketPeers
from ottla.metadata.image import BrokerImage

FETCH, VERSION = 1, 17
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """Broker 2. `answer` serves a connection; by default every body comes back."""

    def __init__(self) -> None:
        self.answer: Answer = echo
        self.connections = 0
        self.port = 0
        self.epoch = 1
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        await self.answer(reader, writer)

    async def stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    def find(self, broker: int) -> BrokerImage | None:
        return BrokerImage(2, None, {"PLAINTEXT": ("127.0.0.1", self.port)}, self.epoch) if broker == 2 else None


async def read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Correlation id and body of a request."""
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    frame = await reader.readexactly(size)
    _, _, correlation_id, length = struct.unpack_from(">hhih", frame)
    return correlation_id, frame[10 + length + 1 :]


def response(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", 5 + len(body), correlation_id) + b"\x00" + body


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        correlation_id, body = await read(reader)
        writer.write(response(correlation_id, body))


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()


@pytest.fixture
async def peers(peer: Peer) -> AsyncIterator[SocketPeers]:
    loop = asyncio.get_running_loop()
    made = SocketPeers(1, peer.find, "PLAINTEXT", lambda ms, call: loop.call_later(ms / 1000, call))
    yield made
    await made.close()


async def ask(
    peers: SocketPeers, body: bytes, channel: Channel = Channel.REPLICATION, timeout_ms: int = 60_000
) -> bytes:
    return bytes(await peers.exchange(2, FETCH, VERSION, body, channel, timeout_ms=timeout_ms))


@pytest.mark.parametrize("size", [0, 1, 60_000, 65_527, 65_531, 65_532, 65_536, 70_000, 3_000_000])
async def test_answers_of_every_size_arrive_whole(peers: SocketPeers, size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    assert await ask(peers, body) == body
    assert await ask(peers, b"and on") == b"and on"


async def test_many_requests_share_a_connection_and_keep_their_order(peers: SocketPeers, peer: Peer) -> None:
    bodies = [str(number).encode() * (number * 97 % 5000) for number in range(200)]
    assert await asyncio.gather(*(ask(peers, body) for body in bodies)) == bodies
    assert peer.connections == 1


async def test_each_channel_is_a_connection(peers: SocketPeers, peer: Peer) -> None:
    for channel in (Channel.REPLICATION, Channel.CONTROL, Channel.TRANSACTIONS, Channel.CONTROL):
        assert await ask(peers, b"x", channel) == b"x"
    assert peer.connections == 3


async def test_an_answer_that_comes_byte_by_byte(peers: SocketPeers, peer: Peer) -> None:
    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        correlation_id, body = await read(reader)
        for byte in response(correlation_id, body):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    peer.answer = slowly
    assert await ask(peers, b"a little at a time") == b"a little at a time"


async def test_the_answer_to_another_request_closes_the_connection(peers: SocketPeers, peer: Peer) -> None:
    async def wrongly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        correlation_id, body = await read(reader)
        writer.write(response(correlation_id + 1, body))

    peer.answer = wrongly
    with pytest.raises(PeerUnavailable, match="answered another request"):
        await ask(peers, b"x")
    peer.answer = echo
    assert await ask(peers, b"again") == b"again"


async def test_what_is_no_answer_closes_the_connection(peers: SocketPeers, peer: Peer) -> None:
    async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\xff" * 100)

    peer.answer = noise
    with pytest.raises(PeerUnavailable):
        await ask(peers, b"x")


async def test_an_overdue_answer_is_given_up(peers: SocketPeers, peer: Peer) -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read(reader)
        await reader.read()

    peer.answer = never
    with pytest.raises(PeerUnavailable, match="overdue") as caught:
        await ask(peers, b"x", timeout_ms=50)
    assert not caught.value.refused


async def test_nobody_waits_for_a_registration_that_is_over(peers: SocketPeers, peer: Peer) -> None:
    """It was paused, say, and replaced meanwhile: who asked it asks somebody else now."""

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read(reader)
        await reader.read()

    peer.answer = never
    waiting = asyncio.ensure_future(ask(peers, b"x"))
    while peer.connections == 0:
        await asyncio.sleep(0.01)
    peers.on_image()
    await asyncio.sleep(0.05)
    assert not waiting.done(), "it is still there"
    peer.epoch = 2
    peers.on_image()
    with pytest.raises(PeerUnavailable, match="its registration is over") as caught:
        await waiting
    assert not caught.value.refused
    peer.answer = echo
    assert await ask(peers, b"again") == b"again"
    assert peer.connections == 2


async def test_a_process_that_is_gone_refuses_and_another_is_found(peers: SocketPeers, peer: Peer) -> None:
    assert await ask(peers, b"x") == b"x"
    await peer.stop()
    with pytest.raises(PeerUnavailable) as caught:
        await ask(peers, b"x")
        await ask(peers, b"x")
    with pytest.raises(PeerUnavailable) as caught:
        await ask(peers, b"x")
    assert caught.value.refused
    await peer.start()  # elsewhere
    assert await ask(peers, b"back") == b"back"


async def test_a_broker_that_nobody_knows(peers: SocketPeers) -> None:
    with pytest.raises(PeerUnavailable, match="broker 7 is not there"):
        await peers.exchange(7, FETCH, VERSION, b"", Channel.CONTROL, timeout_ms=1000)


async def test_the_watch_tells_when_nobody_listens_any_more(peers: SocketPeers, peer: Peer) -> None:
    gone = asyncio.Event()
    peers.watch(2, 1, gone.set)
    while peer.connections == 0:
        await asyncio.sleep(0.01)
    assert not gone.is_set()
    await peer.stop()
    await asyncio.wait_for(gone.wait(), 60)


async def test_the_watch_is_silent_while_somebody_listens(peers: SocketPeers, peer: Peer) -> None:
    """A connection that ends proves nothing, if the next one is accepted."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    peer.answer = hang_up
    gone = asyncio.Event()
    peers.watch(2, 1, gone.set)
    while peer.connections < 5:
        await asyncio.sleep(0.01)
    assert not gone.is_set()


async def test_the_watch_ends_with_the_registration(peers: SocketPeers, peer: Peer) -> None:
    gone = asyncio.Event()
    watching = peers.watch(2, 1, gone.set)
    while peer.connections == 0:
        await asyncio.sleep(0.01)
    peer.epoch = 2
    await peer.stop()
    await asyncio.wait_for(watching, 60)
    assert not gone.is_set()


@pytest.mark.parametrize(
    ("places", "refused"),
    [
        (["127.0.0.1", "127.0.0.2"], True),
        (["::1", "127.0.0.1"], True),
        (["2001:db8::1", "127.0.0.1"], True),  # no way to get there from here
        (["127.0.0.1", "silent"], False),  # somebody may listen there
        ([], False),
    ],
)
async def test_a_name_with_several_addresses_refuses_when_all_do(
    peers: SocketPeers, peer: Peer, places: list[str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await peer.stop()
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def look_up(host: str, port: int, **_: object) -> list[object]:
        return [(0, 0, 0, "", (place, port)) for place in places]

    async def create_connection(make_protocol: Callable[[], asyncio.Protocol], host: str, port: int) -> object:
        if host == "silent":
            raise TimeoutError
        if host == "2001:db8::1":
            raise OSError(errno.ENETUNREACH, "Network is unreachable")
        monkeypatch.undo()
        try:
            return await connect(make_protocol, host, port)
        finally:
            substitute()

    def substitute() -> None:
        monkeypatch.setattr(loop, "getaddrinfo", look_up)
        monkeypatch.setattr(loop, "create_connection", create_connection)

    substitute()
    with pytest.raises(PeerUnavailable) as caught:
        await ask(peers, b"x")
    assert caught.value.refused == refused
