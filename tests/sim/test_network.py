"""The simulated network: what a connection does when machines, processes and links fail."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from random import Random

import pytest

from ottla.testing.simulation.loop import Process, SimulatedLoop
from ottla.testing.simulation.network import Network, ServerEnd


class Line(asyncio.Protocol):
    """The client's end: what it has received, and whether it is over."""

    def __init__(self) -> None:
        self.received = b""
        self.is_over = False

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True


class Net:
    """A client c and a server s, which echoes."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.network = Network(loop, Random(1))
        self.client, self.server = Process(loop, "c"), Process(loop, "s")
        self.machine = self.network.machine("s")
        self.machine.process = self.server
        self.machine.serve = self._serve

    def _serve(self, end: ServerEnd) -> None:
        end.serve_with(lambda connection, frame: bytes(frame))

    def connect(self, timeout_s: float = 3) -> tuple[asyncio.Transport, Line]:
        async def connect() -> tuple[asyncio.Transport, Line]:
            return await asyncio.wait_for(self.loop.create_connection(Line, "s", 9092), timeout_s)

        return self.loop.run_until_complete(self.loop.create_task(connect(), context=self.client.context()))

    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def kill_server(self) -> None:
        self.server.kill()
        self.network.process_ended(self.machine)


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def net() -> Iterator[Net]:
    loop = SimulatedLoop()
    yield Net(loop)
    loop.threads.close()
    loop.close()


def test_requests_are_answered_in_their_order(net: Net) -> None:
    transport, line = net.connect()
    transport.write(_frame(b"one") + _frame(b"two"))
    transport.write(_frame(b"three"))
    net.pass_time(1)
    assert line.received == b"onetwothree"


def test_where_nobody_listens_one_is_refused(net: Net) -> None:
    net.kill_server()
    with pytest.raises(ConnectionRefusedError):
        net.connect()


def test_a_machine_without_power_says_nothing(net: Net) -> None:
    net.server.kill()
    net.network.power_lost(net.machine)
    with pytest.raises(TimeoutError):
        net.connect()
    net.network.power_is_back(net.machine)
    with pytest.raises(ConnectionRefusedError):
        net.connect()


def test_the_kernel_of_a_paused_process_takes_connections_and_bytes(net: Net) -> None:
    net.server.pause()
    transport, line = net.connect()
    transport.write(_frame(b"one"))
    net.pass_time(60)
    assert line.received == b""
    net.server.resume()
    net.pass_time(1)
    assert line.received == b"one"


def test_connections_end_with_the_process(net: Net) -> None:
    _, line = net.connect()
    net.kill_server()
    net.pass_time(1)
    assert line.is_over


def test_connections_to_a_machine_that_went_down_end_when_it_is_back(net: Net) -> None:
    _, line = net.connect()
    net.server.kill()
    net.network.power_lost(net.machine)
    net.pass_time(60)
    assert not line.is_over
    net.network.power_is_back(net.machine)
    net.pass_time(1)
    assert line.is_over


@pytest.mark.parametrize(("source", "target"), [("c", "s"), ("s", "c")])
def test_what_is_sent_over_a_cut_link_comes_when_it_is_healed(net: Net, source: str, target: str) -> None:
    transport, line = net.connect()
    net.network.cut(source, target)
    transport.write(_frame(b"one"))
    transport.write(_frame(b"two"))
    net.pass_time(60)
    assert line.received == b""
    with pytest.raises(TimeoutError):
        net.connect()
    net.network.heal(source, target)
    net.pass_time(1)
    assert line.received == b"onetwo"


def test_what_is_on_its_way_is_lost_with_its_connection(net: Net) -> None:
    transport, line = net.connect()
    transport.write(_frame(b"one"))
    net.network.reset_one()
    net.pass_time(1)
    assert (line.received, line.is_over) == (b"", True)


def test_one_can_be_refused_though_somebody_listens(net: Net) -> None:
    _, line = net.connect()
    net.network.refuse("c", "s")
    net.pass_time(1)
    assert line.is_over
    with pytest.raises(ConnectionRefusedError):
        net.connect()
    net.network.stop_refusing("c", "s")
    net.connect()
