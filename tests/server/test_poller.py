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
