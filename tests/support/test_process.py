"""Ports for servers of tests: nobody else gets them by chance."""

from __future__ import annotations

import socket

import pytest

from tests.support.process import free_ports


def test_a_free_port_is_only_for_who_reuses_addresses() -> None:
    first, second = free_ports(2)
    assert first != second
    with socket.socket() as somebody, pytest.raises(OSError):
        somebody.bind(("127.0.0.1", first))
    for _ in range(2):  # up, down, and up again
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", first))
        with socket.create_server(("127.0.0.1", first)):
            socket.create_connection(("127.0.0.1", first)).close()
