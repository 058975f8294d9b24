"""What a TLS listener shows and whom it believes: settings of its own, and files that change while it runs."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ottla.common.certificates import Authority
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.server.tls_identity import TlsIdentity
from tests.support.manual_clock import ManualClock

AUTHORITY = Authority.new("test", 1)


def properties(folder: Path, **more: str) -> dict[str, str]:
    (folder / "ca.pem").write_bytes(AUTHORITY.issued.certificate_pem)
    (folder / "broker.pem").write_text(AUTHORITY.issue("broker", 1, hosts=["localhost"]).pem)
    return {
        "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "listener.security.protocol.map": "ONE:SSL,TWO:SSL",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode())


def test_each_listener_has_rules_of_its_own(tmp_path: Path) -> None:
    given = properties(tmp_path, listener__name__two__ssl__principal__mapping__rules="RULE:^CN=(.*)$/$1/U")
    config = BrokerConfig.load(given)
    one, two = (TlsIdentity(config, listener, ManualClock()) for listener in config.endpoints)
    certificate = der(AUTHORITY.issue("ada", 1).certificate_pem)
    assert one.principal(certificate) == "User:CN=ada"
    assert two.principal(certificate) == "User:ADA"


@contextmanager
def shown_by(identity: TlsIdentity) -> Iterator[bytes]:
    """The certificate that a client gets to see."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    context = ssl.create_default_context(cadata=AUTHORITY.issued.certificate_pem.decode())
    server = identity.transport(ours)
    with context.wrap_socket(theirs, server_hostname="localhost", do_handshake_on_connect=False) as client:
        seen: bytes | None = None
        while seen is None:
            try:
                client.do_handshake()
                seen = client.getpeercert(binary_form=True)
            except ssl.SSLWantReadError:
                with suppress(BlockingIOError):
                    server.receive(1)
        yield seen
    server.close()


def test_a_file_that_was_replaced_counts_even_if_its_time_is_the_same(tmp_path: Path) -> None:
    given = properties(tmp_path, ssl__client__auth="none")
    config, clock, file = BrokerConfig.load(given), ManualClock(), tmp_path / "broker.pem"
    identity = TlsIdentity(config, config.endpoints[0], clock)
    with shown_by(identity) as first:
        pass
    before = file.stat()
    fresh = tmp_path / "fresh.pem"
    issued = AUTHORITY.issue("broker", 1, hosts=["localhost"])
    fresh.write_text(issued.pem)
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.replace(file)
    clock.advance(2_000)
    with shown_by(identity) as second:
        assert second == der(issued.certificate_pem) != first


def test_a_file_that_cannot_be_used_leaves_the_old_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config, clock = BrokerConfig.load(properties(tmp_path, ssl__client__auth="none")), ManualClock()
    identity = TlsIdentity(config, config.endpoints[0], clock)
    with shown_by(identity) as first:
        pass
    (tmp_path / "broker.pem").write_text("nothing")
    clock.advance(2_000)
    with shown_by(identity) as second:
        assert second == first
    assert "keeping the certificate as it was" in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ssl.keystore.location", "{folder}/store.jks", "keytool -importkeystore"),
        ("ssl.keystore.location", "{folder}/store.p12", "openssl pkcs12 -in"),
        ("ssl.truststore.location", "{folder}/store.jks", "keytool -list -rfc"),
        ("ssl.keystore.location", "{folder}/missing.pem", "No such file"),
        ("ssl.keystore.location", "{folder}/ca.pem", "the key must belong to the first certificate"),
        ("ssl.cipher.suites", "TLS_NO_SUCH_SUITE", "has no cipher that OpenSSL knows"),
    ],
)
def test_settings_that_cannot_be_used_are_one_sentence(tmp_path: Path, name: str, value: str, said: str) -> None:
    config = BrokerConfig.load({**properties(tmp_path), name: value.format(folder=tmp_path)})
    with pytest.raises(OttlaError, match=said) as error:
        TlsIdentity(config, config.endpoints[0], ManualClock())
    assert "\n" not in str(error.value)
