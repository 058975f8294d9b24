"""Each client with each proof of who it is, good and bad: who should gets in, and nobody else does.

Which of them were let in is what the broker's audit trail says, not what the client makes of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from ottla.testing import Broker
from tests.interop.foreign.clients import Client
from tests.interop.foreign.logins import NAMES, NotLetIn, login
from tests.support.certificates import Certificates

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORDS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
KEY_ID = "one"
NAMED = "RULE:^CN=([^,]+),.*$/$1/"
Try = Callable[..., None]


class Secured:
    """A broker behind TLS, and the settings of a client that it lets in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificates = Certificates(folder)
        self.key = RSAKey.generate_key(2048, {"kid": KEY_ID}, private=True)
        jwks = folder / "jwks.json"
        jwks.write_text(json.dumps(KeySet([self.key]).as_dict(private=False)))
        self._settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.issue("127.0.0.1", "localhost")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
            "sasl.enabled.mechanisms": ",".join([*PASSWORDS, "OAUTHBEARER"]),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_ada="secret";',
            "ottla.first.users": ";".join(f"{name}=[name=ada,password=secret]" for name in PASSWORDS[1:]),
            "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
            "sasl.oauthbearer.expected.issuer": "https://login.example",
            "sasl.oauthbearer.expected.audience": "kafka",
            "connection.failed.authentication.delay.ms": "0",
        }

    def broker(self, protocol: str, **more: str) -> Broker:
        settings = {name: value for name, value in self._settings.items() if protocol != "SSL" or "sasl" not in name}
        return Broker(settings | {"listeners": f"{protocol}://127.0.0.1:0"} | more)

    def client(self, protocol: str, **more: str) -> dict[str, str]:
        return {"security.protocol": protocol, "ssl.ca.location": str(self.certificates.ca), **more}

    def by_password(self, mechanism: str, user: str = "ada", password: str = "secret") -> dict[str, str]:
        login = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        return self.client("SASL_SSL", **login)

    def by_token(self, key: Any = None, **claims: Any) -> dict[str, str]:
        now = int(time.time())
        said = {"iss": "https://login.example", "aud": "kafka", "sub": "ada", "iat": now, "exp": now + 600, **claims}
        header = {"alg": "RS256", "kid": KEY_ID}
        token = jwt.encode(header, said, key or self.key, algorithms=["RS256"])
        return self.client("SASL_SSL", token=token, **{"sasl.mechanism": "OAUTHBEARER"})

    def by_certificate(self, identity: Path) -> dict[str, str]:
        own = {"ssl.certificate.location": str(identity), "ssl.key.location": str(identity)}
        return self.client("SSL", **own)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(tmp_path_factory.mktemp("secured"))


@pytest.fixture(scope="module")
def with_logins(secured: Secured) -> Iterator[Broker]:
    with secured.broker("SASL_SSL") as running:
        yield running


@pytest.fixture(scope="module")
def with_certificates(secured: Secured) -> Iterator[Broker]:
    with secured.broker("SSL", **{"ssl.client.auth": "required", "ssl.principal.mapping.rules": NAMED}) as running:
        yield running


@pytest.fixture
def attempt(clients: Callable[[str], Client], caplog: pytest.LogCaptureFixture, tmp_path: Path) -> Try:
    def attempt(name: str, broker: Broker, settings: dict[str, str], let_in: str | None) -> None:
        """`let_in`: as whom; None: not at all."""
        with caplog.at_level("INFO", "ottla.audit"):
            if let_in is None:
                with pytest.raises(NotLetIn):
                    login(name, clients, broker.bootstrap_servers, settings, tmp_path)
            else:
                login(name, clients, broker.bootstrap_servers, settings, tmp_path)
        known = {record.principal for record in caplog.records if record.getMessage() == "login"}  # type: ignore[attr-defined]
        assert known == (set() if let_in is None else {let_in})

    return attempt


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_password(name: str, mechanism: str, secured: Secured, with_logins: Broker, attempt: Try) -> None:
    for wrong in ({"password": "another"}, {"user": "nobody"}):
        attempt(name, with_logins, secured.by_password(mechanism, **wrong), None)
    attempt(name, with_logins, secured.by_password(mechanism), "User:ada")


@pytest.mark.parametrize("name", NAMES)
def test_a_token(name: str, secured: Secured, with_logins: Broker, attempt: Try) -> None:
    attempt(name, with_logins, secured.by_token(RSAKey.generate_key(2048, {"kid": KEY_ID})), None)
    attempt(name, with_logins, secured.by_token(aud="mail"), None)
    attempt(name, with_logins, secured.by_token(), "User:ada")


@pytest.mark.parametrize("name", NAMES)
def test_a_certificate(name: str, secured: Secured, with_certificates: Broker, attempt: Try, tmp_path: Path) -> None:
    issued = secured.certificates
    for identity in (Certificates(tmp_path).issue("ada"), issued.issue("ada", is_expired=True)):
        attempt(name, with_certificates, secured.by_certificate(identity), None)
    attempt(name, with_certificates, secured.client("SSL"), None)
    attempt(name, with_certificates, secured.by_certificate(issued.issue("ada")), "User:ada")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("broker_shows", ["of another authority", "that has expired", "of another host"])
def test_a_broker_whose_certificate_is(
    name: str, broker_shows: str, secured: Secured, attempt: Try, tmp_path: Path
) -> None:
    """Nobody tells it a password."""
    issued = secured.certificates
    identity = {
        "of another authority": lambda: Certificates(tmp_path).issue("127.0.0.1", "localhost"),
        "that has expired": lambda: issued.issue("127.0.0.1", "localhost", is_expired=True),
        "of another host": lambda: issued.issue("elsewhere.example"),
    }[broker_shows]()
    with secured.broker("SASL_SSL", **{"ssl.keystore.location": str(identity)}) as broker:
        attempt(name, broker, secured.by_password("PLAIN"), None)
