"""Both pollers tell a connection the same things."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest

from ottla.common.clock import Clock, SystemClock
from ottla.server.poller import READ, WRITE, EpollPoller, LoopPoller, Poller

Make = Callable[[asyncio.AbstractEventLoop, Clock], Poller]


class Seen:
    def __init__(self) -> None:
        self.events: list[str] = []

    def on_readable(self) -> None:
        self.events.append("read")

    def on_writable(self) -> None:
        self.events.append("write")

    def release_held(self) -> None:
        self.events.append("release")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.mark.parametrize("make", [EpollPoller, LoopPoller])
async def test_interest_in_reading_and_writing_comes_and_goes(
    make: Make, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    seen, poller = Seen(), make(asyncio.get_running_loop(), SystemClock())
    poller.watch(ours.fileno(), seen, READ)
    await asyncio.sleep(0.01)
    assert seen.events == []
    theirs.send(b"x")
    await asyncio.sleep(0.01)
    assert set(seen.events) == {"read"}
    poller.change(ours.fileno(), seen, WRITE)
    seen.events.clear()
    await asyncio.sleep(0.01)
    assert set(seen.events) == {"write"}
    poller.change(ours.fileno(), seen, 0)
    await asyncio.sleep(0.01)
    seen.events.clear()
    await asyncio.sleep(0.01)
    assert seen.events == []
    poller.close()


@pytest.mark.parametrize("make", [EpollPoller, LoopPoller])
async def test_a_hang_up_is_told_as_readable_and_forgetting_ends_it(
    make: Make, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    seen, poller = Seen(), make(asyncio.get_running_loop(), SystemClock())
    poller.watch(ours.fileno(), seen, READ)
    theirs.close()
    await asyncio.sleep(0.01)
    assert "read" in seen.events
    poller.forget(ours.fileno())
    poller.forget(ours.fileno())
    await asyncio.sleep(0.01)
    seen.events.clear()
    await asyncio.sleep(0.01)
    assert seen.events == []
    poller.close()


class Broken(Seen):
    def on_writable(self) -> None:
        raise ValueError("a bug of this connection")

    def release_held(self) -> None:
        raise ValueError("another bug of this connection")


async def test_one_that_fails_keeps_nobody_else_from_being_served(pair: tuple[socket.socket, socket.socket]) -> None:
    """Answers that others have ready would wait for whatever comes next to this broker."""
    loop = asyncio.get_running_loop()
    failures: list[object] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    ours, _theirs = pair
    seen, broken, poller = Seen(), Broken(), EpollPoller(loop, SystemClock())
    poller.holding = [broken, seen]
    poller.watch(ours.fileno(), broken, WRITE)
    async with asyncio.timeout(60):
        while len(failures) < 2:
            await asyncio.sleep(0)
    poller.close()
    assert seen.events == ["release"]
