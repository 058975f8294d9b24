"""Real clients through a TLS listener: who is let in, who is not, and who they are then."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from ottla.protocol.messages import ApiVersionsRequest
from ottla.testing import Broker
from tests.support.certificates import Certificates
from tests.support.raw_client import request_frame
from tests.support.refusals import refusals

NAMED = "RULE:^CN=([^,]+),.*$/$1/"
CERTIFICATE = "-----BEGIN CERTIFICATE-----"


def secured(certificates: Certificates, identity: Path | None = None, **more: str) -> Broker:
    return Broker(
        {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity or certificates.issue("127.0.0.1", "localhost")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            **more,
        }
    )


@pytest.fixture
def broker(certificates: Certificates) -> Iterator[Broker]:
    with secured(certificates) as running:
        yield running


def librdkafka(broker: Broker, certificates: Certificates, **more: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "log_level": 0,
        **more,
    }


def refusal(settings: dict[str, Any]) -> str:
    """What librdkafka says of a broker that it cannot talk to."""
    told = refusals(settings)
    assert told, "the client was let in"
    return " ".join(map(str, told))


def test_confluent_kafka_writes_and_reads(broker: Broker, certificates: Certificates) -> None:
    producer = Producer(librdkafka(broker, certificates, **{"linger.ms": "5"}))
    sent = [os.urandom(1000) for _ in range(2000)]
    for value in sent:
        producer.produce("t", value)
    assert producer.flush(60) == 0
    consumer = Consumer(
        librdkafka(broker, certificates, **{"group.id": "g", "auto.offset.reset": "earliest", "check.crcs": "true"})
    )
    consumer.subscribe(["t"])
    read: list[bytes] = []
    while len(read) < len(sent):
        read += [message.value() for message in consumer.consume(1000, 30) if message.error() is None]
    consumer.close()
    assert read == sent


def test_kafka_python_writes_and_reads(broker: Broker, certificates: Certificates) -> None:
    tls = {
        "security_protocol": "SSL",
        "ssl_cafile": str(certificates.ca),
        "bootstrap_servers": broker.bootstrap_servers,
    }
    producer = KafkaProducer(**tls)
    # Several records of TLS, and several reads of ours, for one request.
    values = [bytes([number]) * 200_000 for number in range(10)]
    for value in values:
        producer.send("t", value).get(30)
    producer.close()
    consumer = KafkaConsumer("t", auto_offset_reset="earliest", consumer_timeout_ms=30_000, **tls)
    assert [next(consumer).value for _ in values] == values
    consumer.close()


async def test_aiokafka_writes(broker: Broker, certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(certificates.ca))
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, security_protocol="SSL", ssl_context=context
    )
    await producer.start()
    assert (await producer.send_and_wait("t", b"x" * 100_000)).offset == 0
    await producer.stop()


def test_a_client_that_does_not_trust_the_ca_stays_away(
    broker: Broker, certificates: Certificates, tmp_path: Path
) -> None:
    others = Certificates(tmp_path)
    assert "verify" in refusal(librdkafka(broker, others))


def test_a_client_needs_a_certificate_of_our_ca_where_one_is_required(
    certificates: Certificates, tmp_path: Path
) -> None:
    with secured(certificates, **{"ssl.client.auth": "required"}) as broker:
        ours, others = certificates.issue("ada"), Certificates(tmp_path).issue("ada")
        expired = certificates.issue("ada", is_expired=True)

        def shown(identity: Path) -> dict[str, Any]:
            paths = {"ssl.certificate.location": str(identity), "ssl.key.location": str(identity)}
            return librdkafka(broker, certificates, **paths)

        assert AdminClient(shown(ours)).list_topics(timeout=30).brokers
        refusal(librdkafka(broker, certificates))
        refusal(shown(others))
        refusal(shown(expired))


def test_who_is_asked_for_a_certificate_may_come_without_one(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """But not with one of another CA."""
    with secured(certificates, **{"ssl.client.auth": "requested", "ssl.principal.mapping.rules": NAMED}) as broker:

        def come(identity: Path | None) -> list[str]:
            own = {"ssl.certificate.location": str(identity), "ssl.key.location": str(identity)} if identity else {}
            caplog.clear()
            with caplog.at_level("INFO", "ottla.audit"):
                told = refusals(librdkafka(broker, certificates, **own))
            known = [record for record in caplog.records if record.getMessage() == "login"]
            return ["refused"] if told else sorted({getattr(record, "principal", "") for record in known})

        assert come(None) == [], "nobody in particular"
        assert come(certificates.issue("ada")) == ["User:ada"]
        assert come(Certificates(tmp_path).issue("ada")) == ["refused"]


@pytest.mark.parametrize("line_end", ["\n", "\\n", " "])
def test_keys_and_certificates_may_be_text_in_the_settings(certificates: Certificates, line_end: str) -> None:
    """With its lines, with two characters for their ends, or on one line; the key may have a password."""

    def text(pem: str) -> str:
        return line_end.join(pem.strip().splitlines())

    key, begin, chain = certificates.issue("127.0.0.1", password="pass").read_text().partition(CERTIFICATE)
    properties = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": text(key),
        "ssl.key.password": "pass",
        "ssl.keystore.certificate.chain": text(begin + chain),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": text(certificates.ca.read_text()),
        "ssl.client.auth": "required",
    }
    ours = str(certificates.issue("ada"))
    with Broker(properties) as broker:
        shown = {"ssl.certificate.location": ours, "ssl.key.location": ours}
        assert not refusals(librdkafka(broker, certificates, **shown))
        refusal(librdkafka(broker, certificates))


def connect(broker: Broker, certificates: Certificates, **versions: Any) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(certificates.ca))
    for name, value in versions.items():
        setattr(context, name, value)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return context.wrap_socket(socket.create_connection((host, int(port)), 30), server_hostname=host)


def ask(sock: socket.socket) -> bytes:
    frame = request_frame(ApiVersionsRequest(), 0)
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    return sock.recv(4)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(broker: Broker, certificates: Certificates, version: ssl.TLSVersion) -> None:
    with connect(broker, certificates, minimum_version=version, maximum_version=version) as sock:
        assert len(ask(sock)) == 4


def test_a_version_that_is_not_enabled_is_refused(certificates: Certificates) -> None:
    with secured(certificates, **{"ssl.enabled.protocols": "TLSv1.3"}) as broker:
        with pytest.raises(OSError):
            ask(connect(broker, certificates, maximum_version=ssl.TLSVersion.TLSv1_2))
        with connect(broker, certificates) as sock:
            assert sock.version() == "TLSv1.3"


def test_ciphers_are_chosen_by_their_names_in_java(certificates: Certificates) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    with secured(certificates, **{"ssl.cipher.suites": suite}) as broker, connect(broker, certificates) as sock:
        cipher = sock.cipher()
        assert cipher is not None and "AES256-GCM" in cipher[0] and sock.version() == "TLSv1.2"


def serial(broker: Broker, certificates: Certificates) -> object:
    with connect(broker, certificates) as sock:
        return sock.getpeercert(binary_form=True)


def test_a_renewed_certificate_is_used_without_a_restart(certificates: Certificates, tmp_path: Path) -> None:
    identity = tmp_path / "broker.pem"
    shutil.copy(certificates.issue("127.0.0.1"), identity)
    with secured(certificates, identity) as broker:
        first = serial(broker, certificates)
        shutil.copy(certificates.issue("127.0.0.1"), identity)
        broker.clock.advance(seconds=2)
        assert serial(broker, certificates) != first
        second = serial(broker, certificates)
        identity.write_text("not a certificate")
        broker.clock.advance(seconds=2)
        assert serial(broker, certificates) == second


def test_a_plain_client_and_one_that_stalls_trouble_nobody(broker: Broker, certificates: Certificates) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with (
        socket.create_connection((host, int(port)), 30) as plain,
        socket.create_connection((host, int(port)), 30) as slow,
    ):
        slow.sendall(b"\x16\x03\x01\x02\x00\x01")  # the first bytes of a hello
        frame = request_frame(ApiVersionsRequest(), 0)
        plain.sendall(struct.pack(">i", len(frame)) + frame)
        with contextlib.suppress(ConnectionResetError):
            received = plain.recv(1000)
            assert received == b"" or received[0] == 21, "an alert of TLS, or nothing"
        with connect(broker, certificates) as sock:
            assert len(ask(sock)) == 4
        broker.clock.advance(seconds=60)
        assert slow.recv(10) == b"", "who does not finish its handshake is sent away"
