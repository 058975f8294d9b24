"""Whoever has not logged in: any bytes in any order, in and around the login, in and around a TLS handshake.

The oracle: the broker lives, its memory and descriptors come back, a client of another listener notices nothing, and
the audit trail says that nobody got in.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.apis import APIS
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from tests.support.brokers import OttlaProcess
from tests.support.certificates import Certificates
from tests.support.neighbour import Neighbour
from tests.support.process import free_ports
from tests.support.raw_client import ConnectionClosed, RawClient, request_frame
from tests.support.scram_login import final, log_in, say

pytestmark = pytest.mark.xdist_group("hostile")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
GROWTH_BYTES_MAX = 60 << 20
LOGIN_TIMEOUT_MS = 3_000
SEED = 20_260_101
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecuredProcess(OttlaProcess):
    """PLAINTEXT for the neighbour, and two listeners to attack."""

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        jwks = folder / "jwks.json"
        self.trail = folder / "audit.log"
        super().__init__(
            folder,
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(certificates.issue("localhost", "127.0.0.1")),
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "sasl.jaas.config": f'{PLAIN_MODULE} required user_ada="secret";',
                "ottla.first.users": ";".join(f"{name}=[name=ada,password=secret]" for name in MECHANISMS[1:3]),
                "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
                "sasl.oauthbearer.expected.issuer": "https://login.example",
                "sasl.oauthbearer.expected.audience": "kafka",
                "delegation.token.secret.key": "of all brokers",
                "connection.failed.authentication.delay.ms": "0",
                "ottla.login.timeout.ms": str(LOGIN_TIMEOUT_MS),
                "ottla.audit.log.file": str(self.trail),
            },
        )
        from joserfc.jwk import KeySet, RSAKey

        key = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
        jwks.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
        self.plain_port, self.sasl_port, self.tls_port = free_ports(3)

    def command(self) -> list[str]:
        where = {"PLAINTEXT": self.plain_port, "SASL_PLAINTEXT": self.sasl_port, "SASL_SSL": self.tls_port}
        self.properties["listeners"] = ",".join(f"{name}://127.0.0.1:{port}" for name, port in where.items())
        command = [self._python, "-m", "ottla", "start", "--data-dir", str(self.data_dir)]
        for name, value in self.properties.items():
            command += ["-X", f"{name}={value}"]
        return command

    def events(self, event: str) -> int:
        return sum(json.loads(line)["event"] == event for line in self.trail.read_text().splitlines())

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredProcess]:
    folder = tmp_path_factory.mktemp("secured")
    with SecuredProcess(folder, Certificates(folder)) as broker:
        yield broker


@contextlib.contextmanager
def attacked(victim: SecuredProcess) -> Iterator[None]:
    """Around an attack; afterwards the rightful user gets in."""
    memory, descriptors, logins = victim.rss_bytes(), victim.descriptors(), victim.events("login")
    with Neighbour(victim):
        yield
        assert victim.rss_bytes() - memory < GROWTH_BYTES_MAX
    assert victim.running, victim.log_tail()
    assert victim.events("login") == logins, "somebody got in"
    assert "Traceback" not in victim.log_tail(10_000)
    deadline = time.monotonic() + 30
    while victim.descriptors() > descriptors + 2:
        assert time.monotonic() < deadline, f"{victim.descriptors() - descriptors} descriptors are left"
        time.sleep(0.1)
    with RawClient("127.0.0.1", victim.sasl_port) as ada:
        assert log_in(ada, "ada", "secret").error_code == 0


# --- any frames in any order


def _messages(chance: random.Random) -> bytes:
    """What a mechanism might be told: of this one, of another, cut, spoiled, or anything."""
    known = [
        b"\0ada\0wrong",
        b"ada\0\0",
        b"\0ada\0secre",
        b"n,,n=ada,r=nonce",
        b"n,,n=ada,r=nonce,tokenauth=true",
        b"n,a=bob,n=ada,r=nonce",
        b"y,,n=ada,r=",
        b"p=tls-unique,,n=ada,r=nonce",
        b"c=biws,r=nonce,p=AAAA",
        b"c=biws,r=nonce," + b"p=" + b"A" * 44,
        b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * chance.choice((0, 10, 5000)) + b"\x01\x01",
        b"\x01",
        b"",
        chance.randbytes(chance.choice((1, 20, 300))),
        b"=" * 2000,
    ]
    message = bytearray(chance.choice(known))
    for _ in range(chance.choice((0, 0, 1, 3))):
        if message:
            at = chance.randrange(len(message))
            if chance.random() < 0.3:
                del message[at:]
            else:
                message[at] = chance.randrange(256)
    return bytes(message)


def _frame(chance: random.Random) -> bytes:
    kind = chance.random()
    request: tuple[Message, int]
    if kind < 0.3:
        mechanism = chance.choice((*MECHANISMS, "GSSAPI", "", "x" * 300, "SCRAM-SHA-1", "plain"))
        request = m.SaslHandshakeRequest(mechanism=mechanism), 1
    elif kind < 0.65:
        request = m.SaslAuthenticateRequest(auth_bytes=_messages(chance)), chance.randrange(3)
    elif kind < 0.75:
        request = m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), chance.randrange(5)
    elif kind < 0.85:
        request = m.MetadataRequest(topics=None), 12
    elif kind < 0.9:
        key = chance.choice((*APIS, -1, 99, 32_767))
        return struct.pack(">hhih", key, chance.choice((-1, 0, 1, 99)), 1, -1) + chance.randbytes(20)
    else:
        return chance.randbytes(chance.choice((1, 8, 10, 200, 3000)))
    frame = bytearray(request_frame(*request))
    if chance.random() < 0.15:
        del frame[chance.randrange(len(frame)) :]
    elif chance.random() < 0.1:
        frame[chance.randrange(len(frame))] = chance.randrange(256)
    return bytes(frame)


def _attack(port: int, chance: random.Random) -> int:
    """One connection, and how many frames it was sent. All at once or in pieces; it waits for the end, or hangs up."""
    frames = [_frame(chance) for _ in range(chance.choice((1, 3, 5, 8)))]
    data = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    if chance.random() < 0.05:
        data += struct.pack(">i", chance.choice((-1, 0, 2**31 - 1, 600_000))) + b"x" * 50
    with socket.create_connection(("127.0.0.1", port), 30) as sock, contextlib.suppress(OSError):
        if chance.random() < 0.2:
            cut = chance.randrange(len(data))
            sock.sendall(data[:cut])
            sock.sendall(data[cut:])
        else:
            sock.sendall(data)
        if chance.random() < 0.1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        elif chance.random() < 0.5:
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65_536):
                pass
    return len(frames)


@pytest.mark.parametrize("count", [4_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_frames_in_any_order_let_nobody_in(victim: SecuredProcess, count: int) -> None:
    chance, sent = random.Random(SEED + count), 0
    with attacked(victim):
        while sent < count:
            sent += _attack(victim.sasl_port, chance)
    assert victim.events("login refused") > 0


# --- SCRAM


def _challenge(client: RawClient, bare: str) -> str:
    assert client.call(m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    return bytes(say(client, f"n,,{bare}".encode()).auth_bytes).decode()


def test_scram_that_is_replayed_weakened_or_begun_anew_lets_nobody_in(victim: SecuredProcess) -> None:
    bare = "n=ada,r=nonce"
    with RawClient("127.0.0.1", victim.sasl_port) as ada:
        challenge = _challenge(ada, bare)
        overheard = final(bare, challenge, "secret")
        assert say(ada, overheard).error_code == 0
    with attacked(victim):
        with RawClient("127.0.0.1", victim.sasl_port) as again:  # the same words
            _challenge(again, bare)
            assert say(again, overheard).error_code
        with RawClient("127.0.0.1", victim.sasl_port) as client:  # the nonce of another login, with the right password
            challenge = _challenge(client, bare)
            other = dict(part.split("=", 1) for part in overheard.decode().split(","))["r"]
            assert say(client, final(bare, challenge, "secret", nonce=other)).error_code
        with RawClient("127.0.0.1", victim.sasl_port) as client:  # fewer iterations than were asked for
            challenge = _challenge(client, bare)
            weak = challenge.replace("i=4096", "i=1")
            assert weak != challenge
            assert say(client, final(bare, weak, "secret")).error_code
        with RawClient("127.0.0.1", victim.sasl_port) as client:  # a second handshake forgets the first
            challenge = _challenge(client, bare)
            assert _challenge(client, bare) != challenge
            assert say(client, final(bare, challenge, "secret")).error_code
        with RawClient("127.0.0.1", victim.sasl_port) as client:  # SHA-512's proof for SHA-256
            challenge = _challenge(client, bare)
            assert say(client, final(bare, challenge, "secret", "SCRAM-SHA-512")).error_code
        with RawClient("127.0.0.1", victim.sasl_port) as client, pytest.raises(ConnectionClosed):
            _challenge(client, bare)  # in the middle of it: something else
            client.call(m.MetadataRequest(topics=[]), 12)


# --- TLS


def test_handshakes_that_stall_or_are_reset_cost_nothing_for_long(victim: SecuredProcess) -> None:
    hello = _client_hello()
    with attacked(victim):
        stalled = []
        for number in range(150):
            sock = socket.create_connection(("127.0.0.1", victim.tls_port), 30)
            sock.sendall(hello[: 1 + number * len(hello) // 150])
            if number % 3 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
            else:
                stalled.append(sock)
        for sock in stalled:  # until the broker is tired of it
            sock.settimeout(30)
            with contextlib.suppress(ConnectionError):
                while sock.recv(65_536):
                    pass
            sock.close()


def test_a_finished_handshake_that_says_nothing_more_ends_too(victim: SecuredProcess) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with attacked(victim):
        for garbage in (b"", b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n", struct.pack(">i", 2**31 - 1)):
            with (
                socket.create_connection(("127.0.0.1", victim.tls_port), 30) as sock,
                context.wrap_socket(sock) as encrypted,
                contextlib.suppress(OSError),
            ):
                encrypted.sendall(garbage)
                while encrypted.recv(4096):
                    pass


def _client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()
