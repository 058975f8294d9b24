"""Readiness of client sockets, with as little between the kernel and the connection as can be.

asyncio's own way costs several microseconds of Python for each ready socket: a selector key, a handle, a context to
run it in. Here all client sockets sit in one epoll of ours, and the event loop watches only that. One turn of the loop
takes the ready sockets of one `poll` and calls their connections directly.
"""

from __future__ import annotations

import asyncio
import select
from time import perf_counter
from typing import Protocol

from ottla.common.clock import Clock

READ = 1
WRITE = 4
# The client will say no more: for whoever does not read at the moment. Told as readable.
HANG_UP = 0x2000
_EVENTS_PER_TURN = 64


class Watched(Protocol):
    def on_readable(self) -> None: ...

    def on_writable(self) -> None: ...


class Holder(Protocol):
    """Whoever has something that leaves when the turn is over."""

    def release_held(self) -> None: ...


class EpollPoller:
    """The events are epoll's own EPOLLIN, EPOLLOUT and EPOLLRDHUP. A broken connection is told as readable to everybody
    who is watched, whatever they asked for, and again until they are forgotten."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        # Asked once for all sockets of a turn: nobody needs to know better when a connection was last alive.
        self.now_ms = clock.monotonic_ms()
        self._epoll = select.epoll()
        self._watched: dict[int, Watched] = {}
        # Answers made in a turn leave together at its end: clients that are busy with the first ones need not be woken
        # for the others, and waking somebody is the most expensive part of sending.
        self.in_turn = False
        # By `time.perf_counter`; for whoever wants to know how long a request has waited for its turn.
        self.turn_began = 0.0
        self.holding: list[Holder] = []
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def watch(self, fd: int, connection: Watched, events: int) -> None:
        self._watched[fd] = connection
        self._epoll.register(fd, events)

    def change(self, fd: int, connection: Watched, events: int) -> None:
        """Also of one that was forgotten."""
        if fd in self._watched:
            self._epoll.modify(fd, events)
        else:
            self.watch(fd, connection, events)

    def forget(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _on_ready(self) -> None:
        self.now_ms = self._clock.monotonic_ms()
        ready = self._epoll.poll(0, _EVENTS_PER_TURN)
        self.turn_began = perf_counter()
        self.in_turn = True
        try:
            self._serve(ready)
        finally:
            self.in_turn = False
            self._release()

    def _release(self) -> None:
        holding, self.holding = self.holding, []
        for holder in holding:
            try:
                holder.release_held()
            except Exception as error:  # of this connection; what others hold leaves all the same
                self._loop.call_exception_handler({"message": "an answer could not leave", "exception": error})

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        watched = self._watched
        for fd, events in ready:
            connection = watched.get(fd)
            if connection is None:
                continue  # closed by one that was served before it
            if events == READ:
                connection.on_readable()
                continue
            if events & WRITE:
                connection.on_writable()
            if events & ~WRITE and fd in watched:
                connection.on_readable()


class LoopPoller:
    """The same on asyncio's own terms, for systems without epoll. Who does not read hears of no hang-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._watched: dict[int, tuple[Watched, int]] = {}
        self.in_turn = False
        self.turn_began = 0.0
        self.holding: list[Holder] = []

    @property
    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def watch(self, fd: int, connection: Watched, events: int) -> None:
        self.change(fd, connection, events)

    def change(self, fd: int, connection: Watched, events: int) -> None:
        _, before = self._watched.get(fd, (connection, 0))
        self._watched[fd] = (connection, events)
        if events & READ and not before & READ:
            self._loop.add_reader(fd, connection.on_readable)
        elif before & READ and not events & READ:
            self._loop.remove_reader(fd)
        if events & WRITE and not before & WRITE:
            self._loop.add_writer(fd, connection.on_writable)
        elif before & WRITE and not events & WRITE:
            self._loop.remove_writer(fd)

    def forget(self, fd: int) -> None:
        if fd in self._watched:
            self.change(fd, self._watched[fd][0], 0)
            del self._watched[fd]

    def close(self) -> None:
        for fd in list(self._watched):
            self.forget(fd)


Poller = EpollPoller | LoopPoller


def make_poller(loop: asyncio.AbstractEventLoop, clock: Clock) -> Poller:
    return EpollPoller(loop, clock) if hasattr(select, "epoll") else LoopPoller(loop, clock)
