"""Bytes that are not requests: sizes that cannot be, frames that never end, other protocols on the port."""

from __future__ import annotations

import socket
import ssl
import struct
import time

import pytest

from ottla.protocol.messages import ApiVersionsRequest, MetadataRequest
from tests.hostile.conftest import Mistreated
from tests.support.brokers import OttlaProcess
from tests.support.raw_client import RawClient, batch_of, fetch_request, request_frame

pytestmark = pytest.mark.xdist_group("hostile")


def connect(victim: OttlaProcess) -> socket.socket:
    return socket.create_connection((victim.host, victim.port), 10)


def hangs_up(sock: socket.socket) -> bool:
    sock.settimeout(10)
    try:
        while sock.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 1, 9, 104_857_601, 2**31 - 1])
def test_sizes_that_cannot_be(victim: OttlaProcess, mistreated: Mistreated, size: int) -> None:
    with mistreated(), connect(victim) as sock:
        sock.sendall(struct.pack(">i", size) + bytes(100))
        assert hangs_up(sock)


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"*1\r\n$4\r\nPING\r\n",
        b"\xff" * 4096,
        b"EHLO example.com\r\n",
    ],
    ids=["http", "ssh", "tls", "redis", "ones", "smtp"],
)
def test_other_protocols(victim: OttlaProcess, mistreated: Mistreated, words: bytes) -> None:
    with mistreated(), connect(victim) as sock:
        sock.sendall(words)
        # Some start with what is a plausible size; then nothing more comes, and the client is merely idle.
        (size,) = struct.unpack(">i", words[:4])
        if not 10 <= size <= 104_857_600:
            assert hangs_up(sock)


def test_a_real_tls_handshake_fails(victim: OttlaProcess, mistreated: Mistreated) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with mistreated(), connect(victim) as sock:
        sock.settimeout(2)
        with pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(sock)


def test_frames_that_are_cut_at_each_byte(victim: OttlaProcess, mistreated: Mistreated) -> None:
    frame = request_frame(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="plain")]), 9)
    whole = struct.pack(">i", len(frame)) + frame
    with mistreated():
        for cut in range(len(whole)):
            with connect(victim) as sock:
                sock.sendall(whole[:cut])


def test_requests_that_are_cut_but_framed(victim: OttlaProcess, mistreated: Mistreated) -> None:
    frame = request_frame(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="plain")]), 9)
    with mistreated():
        for cut in range(10, len(frame)):
            with connect(victim) as sock:
                sock.sendall(struct.pack(">i", cut) + frame[:cut])
                assert hangs_up(sock)


def test_a_byte_at_a_time_from_many(victim: OttlaProcess, mistreated: Mistreated) -> None:
    """Each of two hundred clients announces a large frame and dribbles."""
    with mistreated():
        dribbling = [connect(victim) for _ in range(200)]
        for byte in struct.pack(">i", 100 << 20) + bytes(8):
            for sock in dribbling:
                sock.sendall(bytes([byte]))
            time.sleep(0.1)
        for sock in dribbling:
            sock.close()


def test_frames_that_are_announced_and_never_sent(victim: OttlaProcess, mistreated: Mistreated) -> None:
    with mistreated(growth_bytes_max=250 << 20):
        silent = [connect(victim) for _ in range(300)]
        for sock in silent:
            sock.sendall(struct.pack(">i", 100 << 20) + b"\x00\x03")
        time.sleep(1)
        for sock in silent:
            sock.close()


def test_a_hundred_megabytes_of_nothing(victim: OttlaProcess, mistreated: Mistreated) -> None:
    with mistreated(growth_bytes_max=250 << 20), connect(victim) as sock:
        sock.sendall(struct.pack(">i", 100 << 20))
        for _ in range(100):
            sock.sendall(bytes(1 << 20))
        assert hangs_up(sock)  # a Produce request of version 0, as it happens
    # The memory is given back.
    time.sleep(0.5)
    assert victim.rss_bytes() < 400 << 20


def test_clients_that_never_read_their_answers(victim: OttlaProcess, mistreated: Mistreated) -> None:
    """Each asks for the same megabyte again and again."""
    with RawClient.to(victim.bootstrap) as client:
        client.produce("plain", batch_of(bytes(1_000_000)))
        latest = client.fetch("plain", 0).high_watermark - 1
    frame = request_frame(fetch_request([("plain", 0, latest)], max_wait_ms=0), 12)
    whole = struct.pack(">i", len(frame)) + frame
    with mistreated():
        deaf = [connect(victim) for _ in range(50)]
        for sock in deaf:
            sock.setblocking(False)
        for _ in range(20):
            for sock in deaf:
                try:
                    sock.send(whole * 50)
                except BlockingIOError:
                    continue
            time.sleep(0.05)
        for sock in deaf:
            sock.close()


def test_fetches_that_wait_for_ever_go_with_their_clients(victim: OttlaProcess, mistreated: Mistreated) -> None:
    frame = request_frame(fetch_request([("compacted", 0, 0)], max_wait_ms=2**31 - 1), 12)
    with mistreated():
        for _ in range(300):
            with connect(victim) as sock:
                sock.sendall(struct.pack(">i", len(frame)) + frame)


def test_connections_that_come_and_go(victim: OttlaProcess, mistreated: Mistreated) -> None:
    with mistreated():
        for _ in range(500):
            connect(victim).close()


def test_an_idle_broker_takes_no_time(victim: OttlaProcess) -> None:
    """After all this nothing spins."""
    time.sleep(1)
    before = victim.cpu_seconds()
    time.sleep(2)
    assert victim.cpu_seconds() - before < 0.5


@pytest.mark.parametrize("version", [5, 99, 32767, -1, -32768])
def test_versions_of_api_versions_that_nobody_knows(
    victim: OttlaProcess, client: RawClient, mistreated: Mistreated, version: int
) -> None:
    with mistreated():
        client.send_frame(struct.pack(">hhih", 18, version, 7, -1) + b"\x00whatever")
        frame = client.receive_frame()
        # In the format of version 0, which every client can read: correlation id, UNSUPPORTED_VERSION, and what is.
        assert struct.unpack_from(">ih", frame) == (7, 35)
        assert client.call(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("key", [-1, -32768, 4, 5, 6, 7, 58, 90, 1000, 32767])
def test_apis_that_are_not_served(victim: OttlaProcess, client: RawClient, mistreated: Mistreated, key: int) -> None:
    with mistreated():
        client.send_frame(struct.pack(">hhih", key, 0, 1, -1) + bytes(50))
        assert client.is_closed_by_peer()
