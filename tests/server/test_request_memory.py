"""Requests of all connections together: they wait in their sockets for memory, and each gets its turn."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from ottla.common.clock import SystemClock
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.server.listener import ConnectionLimits, Listener
from ottla.server.request_memory import RequestMemory

LIMIT_BYTES = 6 << 20
BODY = bytes(3 << 20)
FRAME = struct.pack(">i", len(BODY)) + BODY
ANSWER = struct.pack(">i", 2) + b"ok"
# A connection gets this much before it has to ask.
HEAD_BYTES = 256 << 10


class Slow:
    """Answers when it is told to; remembers how much was held at most."""

    def __init__(self, memory: RequestMemory) -> None:
        self.memory = memory
        self.peak_bytes = 0
        self.asked: list[asyncio.Future[bytes]] = []

    async def _answer(self, told: asyncio.Future[bytes]) -> bytes:
        return await told

    def __call__(self, _connection: Any, frame: memoryview) -> Any:
        assert len(frame) == len(BODY)
        self.peak_bytes = max(self.peak_bytes, self.memory.held_bytes)
        told = asyncio.get_running_loop().create_future()
        self.asked.append(told)
        return self._answer(told)


def make_listener(handle: Any, memory: RequestMemory) -> Listener:
    config = BrokerConfig.load({})
    listener = Listener(
        "PLAINTEXT",
        handle,
        clock=SystemClock(),
        limits=ConnectionLimits(config, SystemClock()),
        memory=memory,
        request_bytes_max=config.socket_request_max_bytes,
    )
    listener.bind("127.0.0.1", 0, 50)
    listener.start()
    return listener


async def ask(listener: Listener) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(FRAME)
    answer = await reader.readexactly(len(ANSWER))
    writer.close()
    return answer


async def test_many_large_requests_are_all_answered_within_the_limit() -> None:
    memory = RequestMemory(LIMIT_BYTES)
    handle = Slow(memory)
    listener = make_listener(handle, memory)
    count = 20
    clients = [asyncio.ensure_future(ask(listener)) for _ in range(count)]
    answered = 0
    while answered < count:
        await asyncio.sleep(0.001)
        # One at a time is answered, so that the others must wait for what it gives back.
        if len(handle.asked) > answered:
            handle.asked[answered].set_result(ANSWER)
            answered += 1
    assert await asyncio.gather(*clients) == [ANSWER] * count
    # The oldest may go on beyond the limit, and each connection has its first bytes.
    assert handle.peak_bytes <= LIMIT_BYTES + len(BODY) + count * HEAD_BYTES
    await listener.stop(0)
    assert memory.held_bytes == 0


async def test_who_hangs_up_or_stalls_does_not_keep_others_from_their_memory() -> None:
    memory = RequestMemory(LIMIT_BYTES)
    handle = Slow(memory)
    listener = make_listener(handle, memory)
    stalled = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(5)]
    for _, writer in stalled:
        writer.write(FRAME[:-1])
    while memory.held_bytes < LIMIT_BYTES - len(BODY):
        await asyncio.sleep(0.001)
    client = asyncio.ensure_future(ask(listener))
    for _, writer in stalled:
        writer.close()
    while not handle.asked:
        await asyncio.sleep(0.001)
    handle.asked[0].set_result(ANSWER)
    assert await client == ANSWER
    await listener.stop(0)
    assert memory.held_bytes == 0


async def test_a_client_that_goes_while_its_request_is_worked_on_holds_the_memory_until_then() -> None:
    memory = RequestMemory(LIMIT_BYTES)
    handle = Slow(memory)
    listener = make_listener(handle, memory)
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(FRAME)
    while not handle.asked:
        await asyncio.sleep(0.001)
    writer.close()
    while listener.connection_count:
        await asyncio.sleep(0.001)
    assert memory.held_bytes >= len(BODY)
    handle.asked[0].set_result(ANSWER)
    while memory.held_bytes:
        await asyncio.sleep(0.001)
    await listener.stop(0)


async def test_a_request_whose_size_comes_alone_waits_as_any_other() -> None:
    memory = RequestMemory(LIMIT_BYTES)
    handle = Slow(memory)
    listener = make_listener(handle, memory)
    others = [asyncio.ensure_future(ask(listener)) for _ in range(2)]
    while len(handle.asked) < len(others):
        await asyncio.sleep(0.001)
    assert memory.is_short
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(FRAME[:4])
    while not listener.receiving:
        await asyncio.sleep(0.001)
    writer.write(FRAME[4:])
    answer = asyncio.ensure_future(reader.readexactly(len(ANSWER)))
    while len(handle.asked) < 3:
        assert not answer.done()
        await asyncio.sleep(0.001)
    for told in handle.asked:
        told.set_result(ANSWER)
    assert await asyncio.gather(*others, answer) == [ANSWER] * 3
    await listener.stop(0)
    assert memory.held_bytes == 0


class Told:
    def __init__(self) -> None:
        self.count = 0

    def resume_reading(self) -> None:
        self.count += 1


def test_what_is_given_back_wakes_as_many_as_it_is_enough_for() -> None:
    memory = RequestMemory(10)
    waiting = [Told() for _ in range(100)]
    first = Told()
    memory.begin(first, 10)
    for one in waiting:
        memory.begin(one, 0)
        assert not memory.take(one, 2)
    memory.release(first, 5)
    assert [one.count for one in waiting[:3]] == [1, 1, 0]
    assert sum(one.count for one in waiting) == 2


def test_the_oldest_request_may_go_on_beyond_the_limit_one_at_a_time() -> None:
    memory, first, second = RequestMemory(10), Told(), Told()
    memory.begin(first, 6)
    memory.begin(second, 6)
    assert memory.is_short
    assert not memory.take(second, 1)
    assert memory.take(first, 100)
    memory.end(first)  # all of it is here: now the second is the oldest, but the first is not answered
    assert not memory.take(second, 10)
    told = second.count
    memory.release(first, 106)
    assert second.count == told + 1
    assert memory.take(second, 10)
    memory.end(second)
    memory.release(second, 16)
    assert memory.held_bytes == 0


async def test_requests_that_are_not_answered_for_long_do_not_add_up() -> None:
    """Each was the oldest when the one before it had arrived, and so all were let in."""
    memory = RequestMemory(LIMIT_BYTES)
    handle = Slow(memory)
    listener = make_listener(handle, memory)
    count = 20
    clients = [asyncio.ensure_future(ask(listener)) for _ in range(count)]
    answered, turns_without_a_request = 0, 0
    while answered < count:
        await asyncio.sleep(0.001)
        turns_without_a_request += 1
        if handle.asked[answered:] and turns_without_a_request > 50:
            handle.asked[answered].set_result(ANSWER)
            answered, turns_without_a_request = answered + 1, 0
    assert await asyncio.gather(*clients) == [ANSWER] * count
    assert handle.peak_bytes <= LIMIT_BYTES + len(BODY) + count * HEAD_BYTES
    await listener.stop(0)
    assert memory.held_bytes == 0


def test_a_limit_below_one_request_is_refused_as_in_kafka() -> None:
    with pytest.raises(OttlaError, match=r"queued\.max\.request\.bytes"):
        BrokerConfig.load({"queued.max.request.bytes": "1000"})
    assert BrokerConfig.load({"queued.max.request.bytes": "0"}).queued_max_request_bytes == 0
