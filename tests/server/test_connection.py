"""The connection as a port of its own: frames in, answers out, whatever the client does to us."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ottla.common.clock import SystemClock
from ottla.common.config import BrokerConfig
from ottla.server.connection import Connection
from ottla.server.listener import ConnectionLimits, Listener
from tests.support.manual_clock import ManualClock
from tests.support.process import is_readable

# Only so that a test fails instead of hanging.
GIVE_UP_S = 60


class Slice:
    def __init__(self, file: int, position: int, size: int) -> None:
        self.file, self.position, self.size = file, position, size


class Echo:
    """Answers each frame with itself, or as the test says."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.answers: dict[bytes, Any] = {}

    def __call__(self, connection: Connection, frame: memoryview) -> Any:
        raw = bytes(frame)
        self.frames.append(raw)
        answer = self.answers.get(raw, framed(raw))
        return answer() if callable(answer) else answer


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def echo() -> Echo:
    return Echo()


async def make_listener(echo: Echo, clock: Any = None, **properties: str) -> Listener:
    config = BrokerConfig.load({name.replace("_", "."): value for name, value in properties.items()})
    listener = Listener(
        "PLAINTEXT",
        echo,
        clock=clock or SystemClock(),
        limits=ConnectionLimits(config, clock or SystemClock()),
        request_bytes_max=config.socket_request_max_bytes,
    )
    listener.bind("127.0.0.1", 0, 50)
    listener.start()
    return listener


@pytest.fixture
async def listener(echo: Echo) -> AsyncIterator[Listener]:
    made = await make_listener(echo)
    yield made
    await made.stop(0)


async def connect(listener: Listener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", listener.port)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await asyncio.wait_for(reader.readexactly(4), GIVE_UP_S))
    return await asyncio.wait_for(reader.readexactly(size), GIVE_UP_S)


async def test_frames_sent_one_byte_at_a_time_are_answered(listener: Listener) -> None:
    reader, writer = await connect(listener)
    for byte in framed(b"0123456789abc"):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert await read_frame(reader) == b"0123456789abc"
    writer.close()


async def test_pipelined_frames_are_answered_in_order(listener: Listener) -> None:
    reader, writer = await connect(listener)
    bodies = [b"frame-%08d" % n * (1 + n % 50) for n in range(500)]
    writer.write(b"".join(map(framed, bodies)))
    for body in bodies:
        assert await read_frame(reader) == body
    writer.close()


async def test_short_long_and_listed_answers_keep_their_order(listener: Listener, echo: Echo) -> None:
    """Short answers of one turn are held until its end; nothing may overtake them."""
    long = b"long-answer" * 10_000
    echo.answers[b"a list please"] = [framed(b"list-of-parts")[:6], framed(b"list-of-parts")[6:]]
    echo.answers[b"a long answer"] = framed(long)
    asked = [b"short-request", b"a list please", b"short-request", b"short-request", b"a long answer", b"short-request"]
    reader, writer = await connect(listener)
    writer.write(b"".join(map(framed, asked * 50)))
    told = {b"a list please": b"list-of-parts", b"a long answer": long}
    for body in asked * 50:
        assert await read_frame(reader) == told.get(body, body)
    writer.close()


async def test_what_came_before_a_broken_frame_is_answered(listener: Listener) -> None:
    reader, writer = await connect(listener)
    writer.write(framed(b"good-request") + framed(b"one-more-good") + struct.pack(">i", -5))
    assert await read_frame(reader) == b"good-request"
    assert await read_frame(reader) == b"one-more-good"
    assert await asyncio.wait_for(reader.read(), GIVE_UP_S) == b""
    writer.close()


async def test_order_holds_when_an_early_answer_is_late(listener: Listener, echo: Echo) -> None:
    async def slow() -> bytes:
        await asyncio.sleep(0.05)
        return framed(b"late-answer")

    echo.answers[b"slow-request"] = slow
    reader, writer = await connect(listener)
    writer.write(framed(b"slow-request") + framed(b"quick-request"))
    assert await read_frame(reader) == b"late-answer"
    assert await read_frame(reader) == b"quick-request"
    writer.close()


async def test_a_waiting_request_does_not_hold_up_another_connection(listener: Listener, echo: Echo) -> None:
    forever: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    echo.answers[b"waits-forever"] = lambda: forever
    _, stuck = await connect(listener)
    stuck.write(framed(b"waits-forever"))
    reader, writer = await connect(listener)
    writer.write(framed(b"other-client"))
    assert await read_frame(reader) == b"other-client"
    stuck.close()
    writer.close()


async def test_a_client_that_leaves_cancels_what_it_waited_for(listener: Listener, echo: Echo) -> None:
    forever: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    echo.answers[b"waits-forever"] = lambda: forever
    _, writer = await connect(listener)
    writer.write(framed(b"waits-forever"))
    while not echo.frames:
        await asyncio.sleep(0.01)
    writer.close()
    while not forever.cancelled():
        await asyncio.sleep(0.01)
    assert listener.connection_count == 0


async def test_a_request_that_is_given_up_by_others_closes_the_connection(listener: Listener, echo: Echo) -> None:
    """Its client would take the next answer for this one, or wait for ever."""
    waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    echo.answers[b"waits-forever"] = lambda: waiting
    reader, writer = await connect(listener)
    writer.write(framed(b"waits-forever") + framed(b"next-request"))
    while not echo.frames:
        await asyncio.sleep(0.01)
    waiting.cancel()
    assert await asyncio.wait_for(reader.read(), GIVE_UP_S) == b""
    writer.close()


async def test_work_that_was_begun_ends_though_the_client_has_left(listener: Listener, echo: Echo) -> None:
    ended = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.05)
        ended.set()

    echo.answers[b"do something"] = work
    _, writer = await connect(listener)
    writer.write(framed(b"do something"))
    while not echo.frames:
        await asyncio.sleep(0.01)
    writer.close()
    await asyncio.wait_for(ended.wait(), GIVE_UP_S)
    while listener.connection_count:
        await asyncio.sleep(0.01)


async def test_what_was_sent_before_hanging_up_is_handled(listener: Listener, echo: Echo) -> None:
    forever: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    echo.answers[b"waits-forever"] = lambda: forever
    bodies = [b"say nothing %d" % number for number in range(1000)]
    for body in bodies:
        echo.answers[body] = lambda: None
    _, writer = await connect(listener)
    writer.write(framed(b"waits-forever") + b"".join(map(framed, bodies)) + framed(b"cut short")[:-2])
    await asyncio.sleep(0.05)
    writer.close()
    while listener.connection_count:
        await asyncio.sleep(0.01)
    assert forever.cancelled()
    assert echo.frames == [b"waits-forever", *bodies]


async def test_a_large_frame_arrives_whole(listener: Listener, echo: Echo) -> None:
    body = os.urandom(7 * 1024 * 1024 + 13)
    echo.answers[body] = framed(b"got it all")
    reader, writer = await connect(listener)
    for _ in range(3):  # buffers are reused
        writer.write(framed(body))
        assert await read_frame(reader) == b"got it all"
    assert echo.frames == [body] * 3
    writer.close()


async def test_an_announced_but_unsent_frame_takes_no_memory(listener: Listener) -> None:
    writers = []
    for _ in range(300):
        _, writer = await connect(listener)
        writer.write(struct.pack(">i", 100 * 1024 * 1024) + b"only this")
        await writer.drain()
        writers.append(writer)
    while listener.receiving < 300:
        await asyncio.sleep(0.01)
    held = sum(len(one._frames.buffer or b"") for one in listener._connections.values())
    assert held <= 200 * 1024 * 1024
    for writer in writers:
        writer.close()
    while listener.receiving:
        await asyncio.sleep(0.01)


async def test_frames_arrive_whole_from_many_at_once(listener: Listener, echo: Echo) -> None:
    """Their buffers start small and grow."""
    bodies = [os.urandom(300_000 + number) for number in range(40)]
    connections = [await connect(listener) for _ in bodies]
    for start in (0, 100_000, 200_000, 300_000):
        for (_, writer), body in zip(connections, bodies, strict=True):
            writer.write(framed(body)[start : start + 100_000])
            await writer.drain()
        await asyncio.sleep(0)
    for (reader, writer), body in zip(connections, bodies, strict=True):
        assert await read_frame(reader) == body
        writer.close()


@pytest.mark.parametrize("size", [-1, 0, 9, 2**31 - 1, 200 * 1024 * 1024])
async def test_a_frame_size_out_of_range_closes_the_connection(listener: Listener, size: int) -> None:
    reader, writer = await connect(listener)
    writer.write(struct.pack(">i", size) + b"whatever follows")
    assert await asyncio.wait_for(reader.read(), GIVE_UP_S) == b""
    writer.close()


async def test_a_client_that_speaks_tls_is_named_as_such_once(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        _, writer = await connect(listener)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            starting = writer.start_tls(ssl.create_default_context(), server_hostname="localhost")
            await asyncio.wait_for(starting, GIVE_UP_S)
        writer.close()
    told = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [(one.client, "TLS" in one.message, "security.protocol" in one.message) for one in told] == [  # type: ignore[attr-defined]
        ("127.0.0.1", True, True)
    ]


async def test_a_client_that_never_reads_costs_one_answer_and_stalls_nobody(listener: Listener, echo: Echo) -> None:
    big = framed(bytes(4 * 1024 * 1024))
    echo.answers[b"give me a lot"] = big
    sock = socket.create_connection(("127.0.0.1", listener.port))
    sock.setblocking(False)
    sent = 0
    for _ in range(200):
        try:
            sent += sock.send(framed(b"give me a lot") * 1000)
        except BlockingIOError:
            pass
        await asyncio.sleep(0)
    assert len(echo.frames) <= 3
    reader, writer = await connect(listener)
    writer.write(framed(b"other-client"))
    assert await read_frame(reader) == b"other-client"
    (lazy,) = (one for one in listener._connections.values() if one._out)
    assert len(lazy._frames.ahead) <= 256 * 1024
    sock.close()
    writer.close()


@pytest.mark.parametrize("size", [0, 1, 1000, 32 * 1024, 32 * 1024 + 1, 5_000_000])
async def test_file_slices_leave_between_bytes(listener: Listener, echo: Echo, tmp_path: Path, size: int) -> None:
    data = os.urandom(size + 100)
    (tmp_path / "log").write_bytes(data)
    file = os.open(tmp_path / "log", os.O_RDONLY)
    head, tail = b"head", b"tail"
    answer = [struct.pack(">i", len(head) + 2 * size + len(tail)) + head]
    parts = [*answer, Slice(file, 10, size), Slice(file, 50, size), tail] if size else [*answer, tail]
    echo.answers[b"give me a slice"] = lambda: list(parts)
    reader, writer = await connect(listener)
    writer.write(framed(b"give me a slice"))
    expected = head + data[10 : 10 + size] + data[50 : 50 + size] + tail if size else head + tail
    assert await read_frame(reader) == expected
    writer.write(framed(b"and another"))
    assert await read_frame(reader) == b"and another"
    writer.close()
    os.close(file)


async def test_connections_beyond_the_limit_of_an_address_are_refused(echo: Echo) -> None:
    listener = await make_listener(echo, max_connections_per_ip="2")
    first, second = await connect(listener), await connect(listener)
    reader, third = await connect(listener)
    assert await asyncio.wait_for(reader.read(), GIVE_UP_S) == b""
    first[1].close()
    while listener.connection_count > 1:
        await asyncio.sleep(0.01)
    reader, fourth = await connect(listener)
    fourth.write(framed(b"room again"))
    assert await read_frame(reader) == b"room again"
    for writer in (second[1], third, fourth):
        writer.close()
    await listener.stop(0)


async def test_idle_connections_are_closed_and_busy_ones_kept(echo: Echo) -> None:
    clock = ManualClock()
    listener = await make_listener(echo, clock)
    forever: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    echo.answers[b"waits-forever"] = lambda: forever
    idle_reader, idle_writer = await connect(listener)
    _, busy_writer = await connect(listener)
    busy_writer.write(framed(b"waits-forever"))
    while not echo.frames:
        await asyncio.sleep(0.01)
    clock.advance(600_001)
    listener.close_idle(600_000)
    assert await asyncio.wait_for(idle_reader.read(), GIVE_UP_S) == b""
    assert listener.connection_count == 1
    idle_writer.close()
    busy_writer.close()
    await listener.stop(0)


async def test_stopping_answers_what_was_asked(echo: Echo) -> None:
    listener = await make_listener(echo)

    async def slow() -> bytes:
        await asyncio.sleep(0.1)
        return framed(b"late-answer")

    echo.answers[b"slow-request"] = slow
    reader, writer = await connect(listener)
    writer.write(framed(b"slow-request"))
    while not echo.frames:
        await asyncio.sleep(0.01)
    stopping = asyncio.create_task(listener.stop(5))
    assert await read_frame(reader) == b"late-answer"
    await stopping
    writer.close()


async def test_stopping_answers_what_was_asked_behind_answers_that_leave_slowly(echo: Echo) -> None:
    """Short answers are held until the end of a turn. Here they are more than the sockets take, and the last request
    is worked on meanwhile."""
    listener = await make_listener(echo)
    may_end = asyncio.Event()

    async def work() -> bytes:
        await may_end.wait()
        return framed(b"work is done")

    echo.answers[b"short-question"] = framed(bytes(10_000))
    echo.answers[b"work-for-me"] = work
    loop = asyncio.get_running_loop()
    async with _small_buffers(listener) as (peer, _):
        await loop.sock_sendall(peer, framed(b"short-question") * 15 + framed(b"work-for-me"))
        while len(echo.frames) < 16:
            await asyncio.sleep(0.001)
        stopping = asyncio.create_task(listener.stop(60))
        received = b""
        while len(received) < 15 * 10_004:
            received += await asyncio.wait_for(loop.sock_recv(peer, 65536), 60)
        for _ in range(100):
            await asyncio.sleep(0)
        may_end.set()
        while chunk := await asyncio.wait_for(loop.sock_recv(peer, 65536), 60):
            received += chunk
    assert received[15 * 10_004 :] == framed(b"work is done")
    await stopping


async def test_no_answer_overtakes_those_that_leave_slowly(listener: Listener, echo: Echo) -> None:
    """A request of which half had come is completed while answers before it have not left. Its own is short, and such
    ones are held to the end of the turn: if there is room again by then, it may not go past the others."""
    echo.answers[b"short-question"] = framed(bytes(10_000))
    question = framed(b"x" * 100_000)
    echo.answers[b"x" * 100_000] = framed(b"the last answer")
    loop = asyncio.get_running_loop()
    async with _small_buffers(listener) as (peer, connection):
        await loop.sock_sendall(peer, framed(b"short-question") * 15 + question[:1000])
        while not connection._out or connection._frames.buffer is None:
            await asyncio.sleep(0.001)
        received = bytearray()
        listener.poller.in_turn = True  # one turn of the poller, in which the client reads
        for start in range(1000, len(question), 2000):
            peer.sendall(question[start : start + 2000])
            is_readable(connection._transport.fd, 10)
            connection.on_readable()
        listener.poller.in_turn = False
        assert len(echo.frames) == 16
        with contextlib.suppress(BlockingIOError):
            while is_readable(peer.fileno(), 0.1):
                received += peer.recv(65536)
        connection._sending.release_held()
        expected = framed(bytes(10_000)) * 15 + framed(b"the last answer")
        while len(received) < len(expected):
            received += await asyncio.wait_for(loop.sock_recv(peer, 65536), 60)
    assert received == expected


@contextlib.asynccontextmanager
async def _small_buffers(listener: Listener) -> AsyncIterator[tuple[socket.socket, Any]]:
    """The client's end of a connection that takes little at a time, and the listener's."""
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_connect(peer, ("127.0.0.1", listener.port))
        while not listener.connection_count:
            await asyncio.sleep(0.001)
        (connection,) = listener._connections.values()
        connection._transport._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        yield peer, connection


async def test_a_closed_connection_is_gone_without_a_search(listener: Listener, echo: Echo) -> None:
    """Such searches are rare (`garbage.py`), and connections that have lived for a while would pile up until then."""
    later = asyncio.get_running_loop().create_future()
    echo.answers[b"wait a while"] = later

    def alive() -> int:
        return sum(isinstance(one, Connection) for one in gc.get_objects())

    gc.collect()
    before = alive()
    gc.disable()
    try:
        reader, writer = await connect(listener)
        for question in (b"short-question", b"x" * 300_000):
            writer.write(framed(question))
            await read_frame(reader)
        writer.write(framed(b"wait a while"))
        while len(echo.frames) < 3:
            await asyncio.sleep(0.001)
        assert alive() == before + 1
        writer.close()
        while listener.connection_count:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        assert alive() == before
    finally:
        gc.enable()


async def test_a_connection_that_fails_is_closed_and_holds_nobody_back(listener: Listener, echo: Echo) -> None:
    def fail() -> bytes:
        raise RuntimeError("a bug")

    echo.answers[b"break down!"] = fail
    good = [await connect(listener) for _ in range(5)]
    bad_reader, bad_writer = await connect(listener)
    while listener.connection_count < 6:
        await asyncio.sleep(0.001)
    for _, writer in (*good[:3], (bad_reader, bad_writer), *good[3:]):
        writer.write(framed(b"break down!") if writer is bad_writer else framed(b"good question"))
    assert await asyncio.wait_for(bad_reader.read(), GIVE_UP_S) == b""
    for reader, writer in good:
        assert await read_frame(reader) == b"good question"
        writer.close()
    bad_writer.close()
