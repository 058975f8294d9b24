"""A service of Type=notify: systemd hears when the broker serves and when it stops."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers import OttlaProcess


@pytest.fixture(params=["file", "abstract"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """What stands in for systemd, and the name under which it is found."""
    name = f"@ottla-test-{os.getpid()}-{os.urandom(4).hex()}" if request.param == "abstract" else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name[1:] if name.startswith("@") else name)
        sock.settimeout(60)
        yield sock, name


def test_systemd_hears_of_start_and_stop(listening: tuple[socket.socket, str], tmp_path: Path) -> None:
    sock, name = listening
    with OttlaProcess(tmp_path / "broker", environment={"NOTIFY_SOCKET": name}) as broker:
        assert sock.recv(100) == b"READY=1"
        assert broker.stop() == 0
        assert sock.recv(100) == b"STOPPING=1"


def test_a_socket_that_is_gone_does_not_matter(tmp_path: Path) -> None:
    with OttlaProcess(tmp_path / "broker", environment={"NOTIFY_SOCKET": str(tmp_path / "gone")}) as broker:
        assert broker.stop() == 0
        assert "cannot tell systemd" in broker.log_tail()
