"""Who may connect, and how fast."""

from __future__ import annotations

import errno
import logging
import os
import socket
from typing import Any

import pytest

from ottla.common.config import BrokerConfig
from ottla.server import listener as listener_module
from ottla.server.listener import ConnectionLimits
from tests.server.test_connection import Echo, connect, make_listener
from tests.support.manual_clock import ManualClock


def _limits(**properties: str) -> tuple[ConnectionLimits, ManualClock]:
    clock = ManualClock()
    config = BrokerConfig.load({name.replace("_", "."): value for name, value in properties.items()})
    return ConnectionLimits(config, clock), clock


def test_addresses_have_their_own_limit_and_exceptions() -> None:
    limits, _ = _limits(max_connections_per_ip="1", max_connections_per_ip_overrides="10.0.0.1:2, ::1:0")
    assert [limits.admit("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert [limits.admit("10.0.0.2") for _ in range(2)] == [True, False]
    assert not limits.admit("::1")
    limits.release("10.0.0.2")
    assert limits.admit("10.0.0.2")


def test_no_more_connections_a_second_than_the_rate() -> None:
    limits, clock = _limits(max_connection_creation_rate="2")
    for host in ("a", "b"):
        assert limits.wait_before_accept_ms() == 0
        limits.admit(host)
        clock.advance(100)
    assert limits.wait_before_accept_ms() == 800
    clock.advance(800)
    assert limits.wait_before_accept_ms() == 0


def test_without_a_rate_nobody_waits() -> None:
    limits, _ = _limits()
    assert all(limits.admit("a") and limits.wait_before_accept_ms() == 0 for _ in range(1000))


async def test_a_connection_above_the_rate_is_served_a_little_later() -> None:
    listener = await make_listener(Echo(), max_connection_creation_rate="5")
    try:
        writers = []
        for _ in range(6):
            reader, writer = await connect(listener)
            writers.append(writer)
            writer.write(b"\0\0\0\x0a0123456789")
            assert await reader.readexactly(14) == b"\0\0\0\x0a0123456789"
        for writer in writers:
            writer.close()
    finally:
        await listener.stop(0)


class OutOfDescriptors(socket.socket):
    """A listening socket that accepts nobody for a while."""

    refusals = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_a_lack_of_descriptors_is_said_once_and_so_is_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener_module, "_ACCEPT_AGAIN_S", 0.01)
    monkeypatch.setattr(logging.getLogger("ottla"), "propagate", True)
    listener = await make_listener(Echo())
    assert listener._sock is not None
    refusing = OutOfDescriptors(fileno=os.dup(listener._sock.fileno()))
    refusing.setblocking(False)
    listener.loop.remove_reader(listener._sock.fileno())
    listener._sock.close()
    listener._sock = refusing
    listener.start()
    try:
        with caplog.at_level(logging.INFO, "ottla.server"):
            reader, writer = await connect(listener)
            writer.write(b"\0\0\0\x0a0123456789")
            assert await reader.readexactly(14) == b"\0\0\0\x0a0123456789"
            writer.close()
    finally:
        await listener.stop(0)
    assert refusing.refusals == 0
    said = [record.getMessage() for record in caplog.records if record.name == "ottla.server"]
    assert [one.split(":")[0] for one in said] == ["cannot accept connections", "accepting connections again"]
