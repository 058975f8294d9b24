"""Logging in: every mechanism, what brokers refuse, servers that pretend, and how soon one is told."""

from __future__ import annotations

import base64
import socket
import struct
import threading
from collections.abc import Callable

import pytest

from ottla.client.access.diagnosis import wants_sasl
from ottla.client.access.security import PLAIN_TEXT, AccessRefused, Sasl, Security
from ottla.client.access.security_settings import MECHANISMS
from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient
from ottla.client.connection import BrokerConnection
from ottla.client.lookup import ClusterReader
from ottla.client.producing import TransactionalProducer
from ottla.client.settings import ClientSettings
from ottla.testing import Broker
from tests.support.sasl_broker import SaslBroker

USER = "a=da, ä"
PASSWORD = 'quo"te, = ö'


def connect(port: int, mechanism: str = "PLAIN", password: str = PASSWORD, user: str = USER) -> None:
    security = Security(sasl=Sasl(mechanism, user, password))
    BrokerConnection("127.0.0.1", port, timeout_s=5, security=security).close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_is_let_in_and_a_stranger_is_not(mechanism: str) -> None:
    with SaslBroker({USER: PASSWORD}) as broker:
        connect(broker.port, mechanism)
        assert broker.logged_in == [USER]
        for user, password in ((USER, "wrong"), ("eve", PASSWORD)):
            with pytest.raises(AccessRefused) as refused:
                connect(broker.port, mechanism, password, user)
            said = f"did not let '{user}' in by {mechanism}: Authentication failed: no such luck."
            assert str(refused.value) == f"the broker at 127.0.0.1:{broker.port} {said}"
        assert broker.logged_in == [USER]


def test_a_mechanism_that_the_broker_has_not() -> None:
    with (
        SaslBroker({}, mechanisms=("PLAIN", "GSSAPI")) as broker,
        pytest.raises(AccessRefused, match=r"has no SCRAM-SHA-512: set sasl.mechanism to one .* \(GSSAPI, PLAIN\)"),
    ):
        connect(broker.port, "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda answer: answer.replace(b"i=4096", b"i=1000000000"), "no sensible number of iterations"),
        (lambda answer: answer.replace(b"i=4096", b"i=5"), "it wants 5 iterations"),
        (lambda answer: answer.replace(b"r=", b"r=x"), "its nonce is not ours"),
        (lambda answer: b"v=" + base64.b64encode(bytes(32)) if answer[:1] == b"v" else answer, "does not know the"),
        (lambda answer: b"" if answer[:1] == b"v" else answer, "not of SCRAM"),
    ],
)
def test_a_server_that_pretends_is_not_believed(spoil: Callable[[bytes], bytes], words: str) -> None:
    with (
        SaslBroker({USER: PASSWORD}, spoil=spoil) as broker,
        pytest.raises(AccessRefused, match=f"did not prove in SCRAM-SHA-256 .*{words}.*not be the broker that you"),
    ):
        connect(broker.port, "SCRAM-SHA-256")


def test_a_refusal_is_not_waited_out() -> None:
    """Neither by readers nor by writers, who wait a minute for a broker that is away."""
    with SaslBroker({USER: PASSWORD}) as broker:
        security = Security(sasl=Sasl("PLAIN", USER, "wrong"))
        servers = f"127.0.0.1:{broker.port}"
        reader = ClusterReader(ClientSettings(servers, security=security))
        with pytest.raises(AccessRefused, match="no such luck"):
            reader.topic_names()
        producer = TransactionalProducer(ClusterClient(ClusterAddress(servers, security)), "writer")
        with pytest.raises(AccessRefused, match="no such luck"):
            producer.start()
        assert broker.refused_count == 2, "somebody asked again"


def test_a_broker_that_wants_sasl_from_a_client_that_has_none() -> None:
    with SaslBroker({}) as broker, pytest.raises(AccessRefused) as refused:
        ClusterClient(f"127.0.0.1:{broker.port}").metadata([])
    assert "wants SASL: set security.protocol to SASL_PLAINTEXT, and sasl.mechanism to one" in str(refused.value)
    assert "(PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)" in str(refused.value)


def test_a_broker_without_sasl(broker: Broker) -> None:
    with pytest.raises(AccessRefused, match=r"asks nobody for SASL there: set security.protocol to SSL or PLAINTEXT"):
        connect(int(broker.bootstrap_servers.rpartition(":")[2]))


@pytest.mark.parametrize("rest", [b"\0\0", b"\0\x21\0\0\0\x05\0\x05PLAIN"], ids=["nothing", "a part"])
def test_an_answer_that_lacks_its_end_explains_nothing(rest: bytes) -> None:
    """Whoever asks why a broker hung up must not fall over what it meets there."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            link, _ = server.accept()
            with link:
                link.recv(1024)
                link.sendall(struct.pack(">ii", 4 + len(rest), 1) + rest)

        thread = threading.Thread(target=answer)
        thread.start()
        assert wants_sasl("127.0.0.1", server.getsockname()[1], PLAIN_TEXT) is None
        thread.join()
