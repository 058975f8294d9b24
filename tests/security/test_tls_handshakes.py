"""TLS clients that misbehave: they renegotiate, stall in the midst of a handshake, or reset it. Nobody gets in by that,
nobody else notices, and nothing is left of them."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator

import pytest

from ottla.protocol.messages import ApiVersionsRequest
from ottla.testing import Broker
from tests.support.certificates import Certificates
from tests.support.descriptors import count as open_descriptors
from tests.support.group_members import eventually
from tests.support.raw_client import request_frame

ROUNDS = 25


@pytest.fixture
def broker(certificates: Certificates) -> Iterator[Broker]:
    identity = str(certificates.issue("127.0.0.1", "localhost"))
    settings = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.type": "PEM", "ssl.keystore.location": identity}
    with Broker(settings) as running:
        yield running


def plain_socket(broker: Broker) -> socket.socket:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return socket.create_connection((host, int(port)), 30)


def reset(sock: socket.socket) -> None:
    """A close that is no end of the stream but a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def ask(sock: ssl.SSLSocket) -> None:
    frame = request_frame(ApiVersionsRequest(), 0)
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    (size,) = struct.unpack(">i", sock.recv(4))
    assert size > 0 and sock.recv(size)


class Handshake:
    """A client's handshake, flight by flight."""

    def __init__(self, certificates: Certificates, version: ssl.TLSVersion) -> None:
        context = ssl.create_default_context(cafile=str(certificates.ca))
        context.minimum_version = context.maximum_version = version
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")

    def flight(self, received: bytes = b"") -> bytes:
        self._incoming.write(received)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()


def stages(certificates: Certificates, version: ssl.TLSVersion, broker: Broker) -> Iterator[socket.socket]:
    """Connections that have come as far as each stage of the handshake."""
    for part in (0, 1, 5, 60, None):  # nothing, into the record, into the hello, all of the first flight
        sock = plain_socket(broker)
        sock.sendall(Handshake(certificates, version).flight()[:part])
        yield sock
    for part in (0, 1, 40):  # the broker has answered; nothing or a piece of the second flight
        sock, handshake = plain_socket(broker), Handshake(certificates, version)
        sock.sendall(handshake.flight())
        second = b""
        while not second:
            second = handshake.flight(sock.recv(65_536))
        sock.sendall(second[:part])
        yield sock
    sock = plain_socket(broker)
    sock.sendall(b"\x16\x03\x03\x3f\xff" + b"\x01\x00\x3f\xfb" + b"\x00" * 100)  # a hello of 16 KiB that never comes
    yield sock


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_handshakes_that_are_reset_at_any_stage_leave_nothing(
    broker: Broker, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    context = ssl.create_default_context(cafile=str(certificates.ca))
    with context.wrap_socket(plain_socket(broker), server_hostname="127.0.0.1") as neighbour:
        ask(neighbour)
        before = open_descriptors()
        for _ in range(ROUNDS):
            for sock in stages(certificates, version, broker):
                reset(sock)
            ask(neighbour)
        eventually(lambda: open_descriptors() <= before, lambda: f"{open_descriptors()} descriptors of {before}")
        ask(neighbour)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_handshakes_that_stall_are_ended_and_stall_nobody(
    broker: Broker, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    stalled = list(stages(certificates, version, broker))
    context = ssl.create_default_context(cafile=str(certificates.ca))
    with context.wrap_socket(plain_socket(broker), server_hostname="127.0.0.1") as neighbour:
        ask(neighbour)
    broker.clock.advance(seconds=120)
    for sock in stalled:
        with sock:
            try:
                while sock.recv(65_536):  # what the broker had said before
                    pass
            except ConnectionResetError:
                pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command is not installed")
def test_a_client_that_renegotiates_is_sent_away(broker: Broker, certificates: Certificates) -> None:
    command = ["openssl", "s_client", "-connect", broker.bootstrap_servers, "-tls1_2", "-CAfile", str(certificates.ca)]
    # R on a line of its own is how s_client is told to renegotiate; input stays open, so it is not the client who ends.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        assert client.stdin is not None and client.stdout is not None
        client.stdin.write(b"R\n")
        client.stdin.flush()
        try:
            said = client.stdout.read()
            assert client.wait(30) != 0
        finally:
            client.kill()
    assert b"RENEGOTIATING" in said and b"no renegotiation" in said
    with ssl.create_default_context(cafile=str(certificates.ca)).wrap_socket(
        plain_socket(broker), server_hostname="127.0.0.1"
    ) as neighbour:
        ask(neighbour)
