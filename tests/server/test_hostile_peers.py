"""Clients that vanish, hang up in the middle, never read, or send on and on while their request waits.

The loop may not spin for them: after whatever they did the sockets fall silent, which is counted in calls, not in
seconds. And nothing of them stays: no connection, no waiting request, no buffer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.server import listener as listener_module
from ottla.server.connection import Connection
from ottla.server.listener import Listener
from ottla.server.poller import EpollPoller, LoopPoller
from ottla.server.receiving import ReceivingConnection
from tests.server.test_connection import Slice, framed, make_listener, read_frame
from tests.support.manual_clock import ManualClock

IDLE_MS = 600_000
BIG_BYTES = 8 * 1024 * 1024
# More than is read ahead of a request, and less than sockets take.
PIPELINED_BYTES = 200_000


class Desk:
    """Answers by the first letter of a request."""

    def __init__(self, folder: Path) -> None:
        self.parked: list[asyncio.Future[bytes]] = []
        self.work_may_end = asyncio.Event()
        self.handled = 0
        path = folder / "log"
        path.write_bytes(bytes(BIG_BYTES))
        self.file = os.open(path, os.O_RDONLY)

    def __call__(self, connection: Connection, frame: memoryview) -> Any:
        self.handled += 1
        kind = bytes(frame[:1])
        if kind == b"p":
            self.parked.append(asyncio.get_running_loop().create_future())
            return self.parked[-1]
        if kind == b"w":
            return self._work()
        if kind == b"b":
            return framed(bytes(BIG_BYTES))
        if kind == b"f":
            return [struct.pack(">i", BIG_BYTES), Slice(self.file, 0, BIG_BYTES)]
        return None if kind == b"n" else framed(bytes(frame))

    async def _work(self) -> bytes:
        await self.work_may_end.wait()
        return framed(b"work is done")


def request(kind: bytes, size: int = 20) -> bytes:
    return framed(kind + b"." * (size - 1))


class Calls:
    """How often the loop was woken for a connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("on_readable", "on_writable"):
            monkeypatch.setattr(ReceivingConnection, name, self._counted(getattr(ReceivingConnection, name)))

    def _counted(self, call: Callable[[Connection], None]) -> Callable[[Connection], None]:
        def counted(connection: Connection) -> None:
            self.count += 1
            call(connection)

        return counted

    async def fall_silent(self) -> None:
        """Nothing is told for a while, long before a loop that spins would have told it 2,000 times."""
        start, silent = self.count, 0
        while silent < 20:
            before = self.count
            await asyncio.sleep(0.001)
            silent = silent + 1 if self.count == before else 0
            assert self.count - start < 2000, "the loop spins"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    os.close(made.file)


@pytest.fixture(params=[EpollPoller, LoopPoller])
async def listener(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, calls: Calls, clock: ManualClock, desk: Desk
) -> AsyncIterator[Listener]:
    monkeypatch.setattr(listener_module, "make_poller", request.param)
    made = await make_listener(desk, clock)  # type: ignore[arg-type]
    yield made
    await made.stop(0)


class Peer:
    """A client on a bare socket."""

    def __init__(self, listener: Listener) -> None:
        self.sock = socket.create_connection(("127.0.0.1", listener.port))
        self.sock.setblocking(False)

    def send(self, data: bytes) -> None:
        """As much as the sockets take."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while data:
                data = data[self.sock.send(data) :]

    def read_some(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self.sock.recv(100_000)

    def half_close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


async def empties(listener: Listener) -> None:
    for _ in range(10_000):
        if not listener.connection_count:
            break
        await asyncio.sleep(0.001)
    assert listener.connection_count == 0
    assert listener.receiving == 0


@pytest.mark.parametrize("kind", [b"p", b"w"], ids=["waits", "works"])
@pytest.mark.parametrize("end", ["reset", "half_close", "close"])
async def test_a_client_that_goes_with_much_sent_behind_a_request_does_not_spin_the_loop(
    listener: Listener, desk: Desk, calls: Calls, kind: bytes, end: str
) -> None:
    peer = Peer(listener)
    peer.send(request(kind) + request(b"n", 1000) * (PIPELINED_BYTES // 1000))
    await calls.fall_silent()
    assert desk.handled == 1
    if end == "close":
        peer.sock.close()
    else:
        getattr(peer, end)()
    await calls.fall_silent()
    if isinstance(listener.poller, EpollPoller):
        assert all(one.cancelled() for one in desk.parked), "nobody waits for it any more"
    else:
        for one in desk.parked:
            one.set_result(framed(b"nobody reads this"))
    desk.work_may_end.set()
    await calls.fall_silent()
    if end == "half_close":
        assert desk.handled > PIPELINED_BYTES // 1000, "what was sent before is done"
    await empties(listener)


@pytest.mark.parametrize("kind", [b"b", b"f"], ids=["bytes", "file"])
async def test_a_client_that_never_reads_its_answer_is_closed_when_it_was_idle_for_too_long(
    listener: Listener, calls: Calls, clock: ManualClock, kind: bytes
) -> None:
    peer = Peer(listener)
    peer.send(request(kind))
    await calls.fall_silent()
    clock.advance(IDLE_MS - 1)
    peer.send(request(b"e"))  # to ask for more is not to read
    await calls.fall_silent()
    listener.close_idle(IDLE_MS)
    assert listener.connection_count == 1
    clock.advance(2)
    listener.close_idle(IDLE_MS)
    await empties(listener)
    peer.sock.close()


async def test_a_client_that_reads_slowly_is_not_idle(listener: Listener, calls: Calls, clock: ManualClock) -> None:
    peer = Peer(listener)
    peer.send(request(b"b"))
    await calls.fall_silent()
    left = BIG_BYTES + 4
    while left:
        clock.advance(IDLE_MS // 2)
        for _ in range(40):  # the kernel asks for more when a good part of its buffers is free
            with contextlib.suppress(BlockingIOError):
                left -= len(peer.sock.recv(1 << 20))
            await asyncio.sleep(0)
        await calls.fall_silent()
        listener.close_idle(IDLE_MS)
        assert listener.connection_count == 1
    peer.sock.close()
    await empties(listener)


async def test_a_client_that_was_made_to_wait_for_long_has_time_to_read(
    listener: Listener, desk: Desk, calls: Calls, clock: ManualClock
) -> None:
    peer = Peer(listener)
    peer.send(request(b"p"))
    await calls.fall_silent()
    clock.advance(2 * IDLE_MS)
    listener.close_idle(IDLE_MS)
    desk.parked[0].set_result(framed(bytes(BIG_BYTES)))
    await calls.fall_silent()
    listener.close_idle(IDLE_MS)
    assert listener.connection_count == 1
    clock.advance(IDLE_MS + 1)
    listener.close_idle(IDLE_MS)
    await empties(listener)
    peer.sock.close()


async def test_a_client_that_closes_its_half_gets_the_rest_of_its_answer(listener: Listener) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=2**16)
    writer.write(request(b"b"))
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.write_eof()
    assert len(await read_frame(reader)) == BIG_BYTES
    assert await reader.read() == b""
    writer.close()


async def test_each_request_that_waits_is_given_up_when_the_client_has_gone(
    listener: Listener, desk: Desk, calls: Calls
) -> None:
    peer = Peer(listener)
    peer.send(request(b"p") * 5 + request(b"n"))
    await calls.fall_silent()
    peer.sock.close()
    await empties(listener)
    assert desk.handled == 6
    assert len(desk.parked) == 5 and all(one.cancelled() for one in desk.parked)


async def test_what_was_received_before_a_reset_is_done(listener: Listener, desk: Desk) -> None:
    """A producer with acks=0 that leaves before it has read all is reset by its own system, not closed."""
    peer = Peer(listener)
    peer.send(request(b"n", 100) * 500)
    while not desk.handled:
        await asyncio.sleep(0)
    peer.reset()
    await empties(listener)
    assert desk.handled == 500


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_a_peer_does_the_loop_falls_silent_and_nothing_stays(
    listener: Listener, desk: Desk, calls: Calls, clock: ManualClock, seed: int
) -> None:
    chance = random.Random(seed)
    peers = [Peer(listener) for _ in range(4)]
    for _ in range(chance.randint(1, 12)):
        peer = chance.choice(peers)
        kinds = chance.choices([b"e", b"n", b"p", b"w", b"b", b"f"], weights=[9, 9, 2, 2, 1, 1], k=chance.randint(1, 4))
        data = b"".join(request(kind, chance.choice([20, 1000, 70_000])) * chance.choice([1, 1, 30]) for kind in kinds)
        peer.send(chance.choice([data, data, data[:-3]]))
        for _ in range(chance.choice([0, 0, 1, 50])):
            await asyncio.sleep(0)
            peer.read_some()
        if chance.random() < 0.2:
            peers.remove(peer)
            chance.choice([peer.reset, peer.half_close, peer.sock.close])()
            peers.append(Peer(listener))
    await calls.fall_silent()
    for peer in peers:
        chance.choice([peer.reset, peer.half_close, peer.sock.close, peer.read_some])()
    await calls.fall_silent()
    desk.work_may_end.set()
    await calls.fall_silent()
    # Who is still there and silent goes with the next idle check; who waits stays.
    clock.advance(IDLE_MS + 1)
    listener.close_idle(IDLE_MS)
    assert all(one.is_busy for one in listener._connections.values())
    for peer in peers:
        peer.sock.close()
    while listener.connection_count:
        # With megabytes behind a request that waits, the end of them cannot be seen before the request is done.
        for one in desk.parked:
            if not one.done():
                one.set_result(framed(b"nobody reads this"))
        await asyncio.sleep(0.001)
        clock.advance(IDLE_MS + 1)
        listener.close_idle(IDLE_MS)
    await empties(listener)
    assert all(one.done() for one in desk.parked)
