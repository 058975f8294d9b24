"""A network of machines: connections that are slow, stall while a link is cut, break, or are refused.

It stands behind `loop.create_connection`, so the broker's own code for connections runs on it. A connection keeps the
order of its bytes and loses none, as TCP: what is sent over a cut link waits until the link is whole, and is lost only
when the connection ends before. Order between connections is up to the seed.

- A process that ends closes its connections, and who connects to its machine is refused.
- A machine without power says nothing at all, and closes nothing.
- A process that is paused is connected to by its kernel, which also takes what is sent.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.broker.context import ANONYMOUS
from ottla.testing.simulation.loop import Process, SimulatedLoop

_SIZE = struct.Struct(">i")
_CONNECT_AGAIN_S = 0.5

# The end of a connection, among what is sent on it.
END = None


@dataclass(slots=True)
class Machine:
    """`serve` is given each new connection of its process; None: nobody listens."""

    name: str
    is_on: bool = True
    process: Process | None = None
    serve: Callable[[ServerEnd], None] | None = None
    connections: dict[Link, None] = field(default_factory=dict)


class Network:
    def __init__(self, loop: SimulatedLoop, rng: Random) -> None:
        self.loop = loop
        self.rng = rng
        self.machines: dict[str, Machine] = {}
        # Directed: from one machine, to another.
        self._cut: set[tuple[str, str]] = set()
        self._slow: dict[tuple[str, str], float] = {}
        # Whoever connects is refused, though somebody listens.
        self._refused: set[tuple[str, str]] = set()
        self._connections = 0
        # What happens on a wire happens in nobody's name.
        self.nobody: Context = copy_context()
        loop.connect = self.connect

    def machine(self, name: str) -> Machine:
        return self.machines.setdefault(name, Machine(name))

    # --- faults

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def cut(self, source: str, target: str) -> None:
        self._cut.add((source, target))

    def heal(self, source: str, target: str) -> None:
        self._cut.discard((source, target))
        self._release()

    def refuse(self, source: str, target: str) -> None:
        """Connections between the two break, and new ones are refused, whoever listens."""
        self._refused.add((source, target))
        for link in list(self.machine(source).connections):
            if (link.client, link.server) == (source, target):
                link.reset()

    def stop_refusing(self, source: str, target: str) -> None:
        self._refused.discard((source, target))

    def heal_all(self) -> None:
        self._cut.clear()
        self._refused.clear()
        self._slow.clear()
        self._release()

    def slow_down(self, source: str, target: str, delay_s: float) -> None:
        self._slow[source, target] = delay_s

    def _release(self) -> None:
        for machine in self.machines.values():
            for link in machine.connections:
                link.release()

    def reset_one(self) -> str | None:
        """Break a connection; what is on its way is lost. Which one was it?"""
        links = [link for machine in self.machines.values() for link in machine.connections]
        if not links:
            return None
        link = self.rng.choice(links)
        link.reset()
        return f"{link.client} - {link.server}"

    def process_ended(self, machine: Machine) -> None:
        """Its kernel closes what it had open."""
        machine.serve = None
        for link in list(machine.connections):
            link.end_of(machine.name)

    def power_lost(self, machine: Machine) -> None:
        machine.is_on = False
        machine.serve = None

    def power_is_back(self, machine: Machine) -> None:
        """Whoever still believes in an old connection is told that there is none."""
        machine.is_on = True
        for link in list(machine.connections):
            link.end_of(machine.name)

    # --- connections

    def delay_s(self, source: str, target: str) -> float:
        usual = self.rng.random() * 0.002
        if self.rng.random() < 0.01:
            usual += self.rng.random() * 0.1
        return usual + self._slow.get((source, target), 0.0) * self.rng.random()

    async def connect(
        self, process: Process, make_protocol: Callable[[], Any], host: str
    ) -> tuple[SimulatedTransport, Any]:
        source, target = self.machine(process.name), self.machine(host)
        while True:
            await asyncio.sleep(self.delay_s(source.name, target.name))
            is_heard = target.is_on and not self.is_cut(source.name, target.name)
            if is_heard and not self.is_cut(target.name, source.name):
                break
            await asyncio.sleep(_CONNECT_AGAIN_S)
        await asyncio.sleep(self.delay_s(target.name, source.name))
        if target.serve is None or not target.is_on or (source.name, host) in self._refused:
            raise ConnectionRefusedError(f"nobody listens at {host}")
        assert target.process is not None
        self._connections += 1
        protocol: Any = make_protocol()
        link = Link(self, self._connections, source, target, process, target.process, protocol)
        target.process.call_soon(target.serve, link.server_end)
        protocol.connection_made(link.transport)
        return link.transport, protocol


class Link:
    """One connection: two pipes, and what is at their ends."""

    def __init__(
        self,
        network: Network,
        number: int,
        source: Machine,
        target: Machine,
        client_process: Process,
        server_process: Process,
        protocol: Any,
    ) -> None:
        self.loop = network.loop
        self.number = number
        self.client, self.server = source.name, target.name
        self._machines = (source, target)
        self.server_end = ServerEnd(self)
        self.transport = SimulatedTransport(self, protocol)
        self.to_server = Pipe(network, source.name, target, server_process, self.server_end.receive)
        self.to_client = Pipe(network, target.name, source, client_process, self.transport.receive)
        for machine in self._machines:
            machine.connections[self] = None

    def release(self) -> None:
        self.to_server.release()
        self.to_client.release()

    def end_of(self, name: str) -> None:
        """The process there has ended: the other side hears of it."""
        (self.to_client if name == self.server else self.to_server).send(END)

    def reset(self) -> None:
        for pipe in (self.to_server, self.to_client):
            pipe.drop()
            pipe.send(END)

    def forget(self) -> None:
        for machine in self._machines:
            machine.connections.pop(self, None)


class Pipe:
    def __init__(
        self, network: Network, source: str, target: Machine, process: Process, receive: Callable[[bytes | None], None]
    ) -> None:
        self._network, self._source, self._target, self._process = network, source, target, process
        self._receive = receive
        self._last_arrival_s = 0.0
        self._under_way: deque[bytes | None] = deque()
        # What has come to a cut.
        self._stalled = 0
        self._drops = 0

    def send(self, item: bytes | None) -> None:
        loop = self._network.loop
        self._under_way.append(item)
        delay_s = self._network.delay_s(self._source, self._target.name)
        self._last_arrival_s = max(self._last_arrival_s, loop.time() + delay_s)
        nobody = self._network.nobody
        loop.call_at(self._last_arrival_s, self._arrive, self._drops, context=nobody.copy())

    def _arrive(self, drops: int) -> None:
        if drops != self._drops or not self._under_way:
            return
        if self._stalled or not self._target.is_on or self._network.is_cut(self._source, self._target.name):
            self._stalled += 1
            return
        self._process.call_soon(self._receive, self._under_way.popleft())

    def release(self) -> None:
        if self._network.is_cut(self._source, self._target.name) or not self._target.is_on:
            return
        stalled, self._stalled = self._stalled, 0
        for _ in range(stalled):
            self._process.call_soon(self._receive, self._under_way.popleft())

    def drop(self) -> None:
        """What is under way is lost."""
        self._under_way.clear()
        self._stalled = 0
        self._drops += 1


class SimulatedTransport(asyncio.Transport):
    """The end of whoever has connected."""

    def __init__(self, link: Link, protocol: Any) -> None:
        super().__init__()
        self._link = link
        self._protocol = protocol
        self._is_closed = False

    def write(self, data: Any) -> None:
        if not self._is_closed:
            self._link.to_server.send(bytes(data))

    def receive(self, data: bytes | None) -> None:
        if self._is_closed:
            return
        if data is END:
            self._close(None)
            return
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.data_received(data)
            return
        view = memoryview(data)
        while view and not self._is_closed:
            buffer = memoryview(self._protocol.get_buffer(len(view)))
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            self._protocol.buffer_updated(size)
            view = view[size:]

    def abort(self) -> None:
        if not self._is_closed:
            self._link.to_server.send(END)
            self._close(None)

    close = abort

    def _close(self, error: Exception | None) -> None:
        self._is_closed = True
        self._link.forget()
        self._link.loop.call_soon(self._protocol.connection_lost, error)

    def is_closing(self) -> bool:
        return self._is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return _NoSocket() if name == "socket" else default


class _NoSocket:
    def setsockopt(self, *_: object) -> None:
        """Nothing to set."""


Handle = Callable[[Any, memoryview], Any]


@dataclass(slots=True)
class _Listener:
    name: str


class ServerEnd:
    """What the broker's router sees of a connection: its requests are answered one after the other."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.context: Any = None
        self.client_host = link.client
        self.principal = "User:ANONYMOUS"
        self.id = link.number
        self.listener = _Listener("PLAINTEXT")
        self.principal = ANONYMOUS
        self.client_software = ("", "")
        self.login = None  # nobody has to log in here
        self._received = bytearray()
        self._handle: Handle | None = None
        self._answering: asyncio.Future[Any] | None = None
        self._is_closed = False

    def serve_with(self, handle: Handle) -> None:
        self._handle = handle
        self._go_on()

    async def drain(self) -> None:
        """What is being answered is answered; nothing more."""
        self._handle = None
        while self._answering is not None and not self._is_closed:
            await asyncio.sleep(0.01)
        self.close()

    def receive(self, data: bytes | None) -> None:
        if data is END:
            self._is_closed = True
            # As `server/connection.py`: who waits is given up, work runs to its end.
            if self._answering is not None and not isinstance(self._answering, asyncio.Task):
                self._answering.cancel()
            return
        self._received += data
        self._go_on()

    def _go_on(self) -> None:
        while self._handle is not None and self._answering is None and len(self._received) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received)
            if len(self._received) < _SIZE.size + size:
                return
            frame = bytearray(self._received[_SIZE.size : _SIZE.size + size])
            del self._received[: _SIZE.size + size]
            answer = self._handle(self, memoryview(frame))
            if answer is None or isinstance(answer, (bytes, bytearray, list)):
                self._send(answer)
            else:
                self._answering = asyncio.ensure_future(answer)
                self._answering.add_done_callback(self._on_answer)

    def _on_answer(self, answering: asyncio.Future[Any]) -> None:
        self._answering = None
        if answering.cancelled() or answering.exception() is not None:
            self.close()
        else:
            self._send(answering.result())
            self._go_on()

    def _send(self, answer: Any) -> None:
        if answer is not None and not self._is_closed:
            self._link.to_client.send(joined(answer))

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._link.to_client.send(END)


def joined(answer: Any) -> bytes:
    """An answer of the router as bytes: those of files are read now."""
    if isinstance(answer, (bytes, bytearray)):
        return bytes(answer)
    return b"".join(
        bytes(part)
        if isinstance(part, (bytes, bytearray, memoryview))
        else os.pread(part.file, part.size, part.position)
        for part in answer
    )
