"""TLS end to end: Ottla behind a proxy that speaks it, all kinds of certificates, ports that speak something else."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.client.access.security import AccessRefused, Security, Tls
from ottla.client.access.security_settings import parse_security
from ottla.client.address import ClusterAddress
from ottla.client.cluster import ClusterClient, Unreachable
from ottla.client.fetching import OffsetRange, fetch_ranges
from ottla.client.lookup import LATEST, ClusterReader
from ottla.client.producing import TransactionalProducer
from ottla.client.settings import ClientSettings
from ottla.common.ids import TopicPartition
from ottla.kernel.decode import Decoder
from ottla.testing import Broker
from tests.client.test_producing import batch
from tests.support.certificates import Certificates
from tests.support.proxy import Proxy

TOPIC = TopicPartition("out", 0)
START_PROXY = Callable[..., Proxy]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(certificates: Certificates) -> Iterator[Proxy]:
    """What a broker with a TLS listener looks like from outside."""
    server = certificates.server(certificates.issue("localhost", "127.0.0.1"))
    with (
        Proxy(tls=server) as proxy,
        Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker,
    ):
        proxy.target = _port(broker)
        broker.create_topic(TOPIC.topic)
        yield proxy


@pytest.fixture
def start_proxy(secured: Proxy, certificates: Certificates) -> Iterator[START_PROXY]:
    """Another way to the same broker, with another certificate."""
    started: list[Proxy] = []

    def start(identity: Path, **more: Any) -> Proxy:
        proxy = Proxy(tls=certificates.server(identity, **more))
        proxy.__enter__()
        proxy.target = secured.target
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        proxy.__exit__(None, None, None)


def _port(broker: Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def ask(servers: str, tls: Tls | None) -> None:
    with ClusterClient(ClusterAddress(servers, Security(tls)), timeout_s=5) as cluster:
        cluster.metadata([])


def refusal(servers: str, tls: Tls | None) -> str:
    with pytest.raises(AccessRefused) as refused:
        ask(servers, tls)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_transactions_and_large_answers(secured: Proxy, certificates: Certificates) -> None:
    security = Security(Tls(ca_location=str(certificates.ca)))
    chance = random.Random(1)
    values = [chance.randbytes(500_000) for _ in range(40)]  # which no codec makes small
    with ClusterClient(ClusterAddress(secured.address, security)) as cluster:
        producer = TransactionalProducer(cluster, "writer")
        producer.start()
        producer.begin()
        producer.produce((TOPIC, batch(value)) for value in values)
        producer.commit()
        producer.close()
    settings = ClientSettings(secured.address, fetch_bytes_max=32 * 1024 * 1024, security=security)
    with ClusterReader(replace(settings, partition_fetch_bytes_max=32 * 1024 * 1024)) as reader:
        end = reader.offsets({TOPIC: LATEST})[TOPIC]
        fetched = list(fetch_ranges(reader, [OffsetRange(*TOPIC, 0, end)], _fail))
    assert max(len(one.records) for one in fetched) > 15_000_000
    found = []
    for one in fetched:
        decoder = Decoder(one.records, one.start, end, one.aborted)
        while (columns := decoder.next_columns()) is not None:
            found += columns[1].to_pylist()
    assert found == values


def _fail(sentence: str) -> None:
    raise AssertionError(sentence)


def test_whom_we_trust_may_be_a_file_or_a_text(secured: Proxy, certificates: Certificates) -> None:
    text = certificates.ca.read_text()
    flat = {"security.protocol": "SSL", "ssl.truststore.certificates": text.replace("\n", " ")}
    for tls in (Tls(ca_location=str(certificates.ca)), Tls(ca_pem=text), parse_security(flat).tls):
        ask(secured.address, tls)


def test_a_client_without_trust_is_told_what_to_set(secured: Proxy, tmp_path: Path) -> None:
    said = refusal(secured.address, Tls())
    assert f"the broker at {secured.address} is from nobody we trust" in said
    assert "ssl.truststore.location" in said
    assert "ssl.ca.location" in said
    other = Certificates(tmp_path)
    assert "is from nobody we trust" in refusal(secured.address, Tls(ca_location=str(other.ca)))
    ask(secured.address, Tls(checks_certificate=False, checks_host_name=False))


def test_a_certificate_for_another_host(start_proxy: START_PROXY, certificates: Certificates) -> None:
    proxy = start_proxy(certificates.issue("elsewhere.example"))
    trusting = Tls(ca_location=str(certificates.ca))
    said = refusal(proxy.address, trusting)
    assert "is for another host" in said
    assert "set ssl.endpoint.identification.algorithm to nothing" in said
    with ClusterClient(ClusterAddress(proxy.address, Security(replace(trusting, checks_host_name=False)))) as cluster:
        assert cluster.metadata([]).brokers


def test_a_certificate_that_has_expired(start_proxy: START_PROXY, certificates: Certificates) -> None:
    proxy = start_proxy(certificates.issue("127.0.0.1", is_expired=True))
    assert "has expired: renew it" in refusal(proxy.address, Tls(ca_location=str(certificates.ca)))


def test_a_broker_that_asks_who_we_are(start_proxy: START_PROXY, certificates: Certificates) -> None:
    proxy = start_proxy(certificates.issue("127.0.0.1"), asks_for_certificates=True)
    ca = {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}
    me = certificates.issue("ada@example.com")
    locked = certificates.issue("ada@example.com", password="open sesame")
    unlocked = {"ssl.key.password": "open sesame"}
    for given in (
        {"ssl.keystore.location": str(me), "ssl.keystore.type": "PEM"},
        {"ssl.keystore.certificate.chain": me.read_text(), "ssl.keystore.key": me.read_text()},
        {"ssl.certificate.location": str(me), "ssl.key.location": str(me)},
        {"ssl.certificate.pem": locked.read_text(), "ssl.key.pem": locked.read_text(), **unlocked},
        {"ssl.keystore.location": str(locked), "ssl.keystore.type": "PEM", **unlocked},
    ):
        ask(proxy.address, parse_security({**ca, **given}).tls)
    # Without its password, or with another one: nobody is asked for it at the terminal.
    for password in ({}, {"ssl.key.password": "wrong"}):
        tls = parse_security({**ca, "ssl.certificate.location": str(locked), **password}).tls
        said = refusal(proxy.address, tls)
        assert "ssl.key.password is needed if it is encrypted" in said


def test_a_client_that_does_not_say_who_it_is(certificates: Certificates) -> None:
    """The proxy would hang up without a word; brokers say why, at the moment at which our first request arrives."""
    context = certificates.server(certificates.issue("127.0.0.1"), asks_for_certificates=True)

    def refuse(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            context.wrap_socket(connection, server_side=True)

    with _serving(refuse) as address:
        said = refusal(address, Tls(ca_location=str(certificates.ca)))
    assert f"the broker at {address} does not accept the certificate of this client, or wants one" in said
    assert "ssl.keystore.location" in said


@contextmanager
def _serving(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    handle(server.accept()[0])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_files_that_are_not_there_or_not_pem(secured: Proxy, certificates: Certificates, tmp_path: Path) -> None:
    assert "gone.pem of the ssl settings cannot be read here: No such file" in refusal(
        secured.address, Tls(ca_location=str(tmp_path / "gone.pem"))
    )
    (tmp_path / "store.pem").write_bytes(b"\xfe\xed\xfe\xed")
    assert "no certificates that can be read as PEM" in refusal(
        secured.address, Tls(ca_location=str(tmp_path / "store.pem"))
    )


def test_a_certificate_that_was_renewed_is_used_by_the_next_connection(
    secured: Proxy, certificates: Certificates, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(Certificates(tmp_path).ca.read_text())
    assert "nobody we trust" in refusal(secured.address, Tls(ca_location=str(trusted)))
    trusted.write_text(certificates.ca.read_text())
    ask(secured.address, Tls(ca_location=str(trusted)))


# --- ports that speak something else


def test_tls_on_a_port_of_plain_text(broker: Broker, certificates: Certificates) -> None:
    said = refusal(broker.bootstrap_servers, Tls(ca_location=str(certificates.ca)))
    assert f"{broker.bootstrap_servers} speaks plain text there, and security.protocol is SSL" in said
    assert "set it to PLAINTEXT or SASL_PLAINTEXT" in said


def test_plain_text_on_a_port_of_tls(secured: Proxy) -> None:
    said = refusal(secured.address, None)
    assert f"the broker at {secured.address} speaks TLS there" in said
    assert "to SSL or SASL_SSL" in said


def test_a_port_that_hangs_up_on_everybody_is_only_unreachable(certificates: Certificates) -> None:
    with _serving(socket.socket.close) as address:
        for tls in (None, Tls(ca_location=str(certificates.ca))):
            with pytest.raises(Unreachable, match="cannot reach any broker"):
                ask(address, tls)
