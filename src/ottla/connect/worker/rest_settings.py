"""How a worker's REST API is reached: `listeners`, TLS under `listeners.https.ssl.*`, and who may log in."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ottla.client.access.java_stores import pem_store
from ottla.client.access.security import Tls
from ottla.client.access.security_settings import parse_security
from ottla.client.access.tls import context_of
from ottla.common.errors import OttlaError
from ottla.common.passwords import is_broken_hash
from ottla.connect.worker.properties import read_properties

DEFAULT_PORT = 8083
CREDENTIALS = "ottla.rest.credentials.file"
EXTENSIONS = "rest.extension.classes"
CLIENT_AUTH = "ssl.client.auth"
_PREFIX = "listeners.https."
_BASIC_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
_CLIENT_AUTHS = ("none", "requested", "required")


@dataclass(frozen=True)
class RestSettings:
    host: str
    port: int
    # A PEM file with key and certificates: HTTPS.
    certificate: str | None = None
    key_password: str | None = None
    # Who vouches for clients that show a certificate.
    client_ca: str | None = None
    requires_client: bool = False
    # How other workers are asked.
    tls: Tls | None = None
    # Passwords, or their hashes, by user; None: everybody may ask.
    credentials: Mapping[str, str] | None = None

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def verify(self) -> ssl.SSLContext | bool:
        """As httpx takes it. Raises OttlaError."""
        return True if self.tls is None else context_of(self.tls)


def parse_rest(given: Mapping[str, str], listen: str | None) -> RestSettings:
    """`listen`: HOST:PORT that the command line says instead. Raises OttlaError."""
    scheme, host, port = _listener(given.get("listeners", f"http://127.0.0.1:{DEFAULT_PORT}").split(",")[0].strip())
    if listen is not None:
        scheme, host, port = _listener(listen if "://" in listen else f"{scheme}://{listen}")
    credentials = _credentials(given)
    if scheme == "http":
        return RestSettings(host, port, credentials=credentials)
    # As Kafka's: all of them with the prefix, or all without.
    own = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    own = own or {name: value for name, value in given.items() if name.startswith("ssl.")}
    certificate, client_ca = pem_store(own, "keystore"), pem_store(own, "truststore")
    if certificate is None:
        raise OttlaError(
            f"listeners has https, which needs a certificate: set {_PREFIX}ssl.keystore.location to a PEM file with "
            f"the key and its certificates, and {_PREFIX}ssl.keystore.type to PEM."
        )
    asked = own.pop(CLIENT_AUTH, "none").strip().lower()
    if asked not in _CLIENT_AUTHS:
        raise OttlaError(f"{_PREFIX}{CLIENT_AUTH} is '{asked}', expected one of {', '.join(_CLIENT_AUTHS)}.")
    if asked != "none" and client_ca is None:
        raise OttlaError(f"{_PREFIX}{CLIENT_AUTH} is {asked}: name in {_PREFIX}ssl.truststore.location whom to trust.")
    return RestSettings(
        host,
        port,
        certificate=certificate,
        key_password=own.get("ssl.key.password"),
        client_ca=None if asked == "none" else client_ca,
        requires_client=asked == "required",
        tls=parse_security({**own, "security.protocol": "SSL"}).tls,
        credentials=credentials,
    )


def is_about_rest(name: str) -> bool:
    return name in ("listeners", CREDENTIALS, EXTENSIONS, CLIENT_AUTH) or name.startswith(_PREFIX)


def _listener(text: str) -> tuple[str, str, int]:
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme.lower() not in ("http", "https") or port is None:
        raise OttlaError(f"'{text}' is no place to listen: expected HOST:PORT, http://HOST:PORT or https://HOST:PORT.")
    return parts.scheme.lower(), parts.hostname or "0.0.0.0", port


def _credentials(given: Mapping[str, str]) -> dict[str, str] | None:
    """An extension that is not there might be what keeps strangers out: nobody may believe that it is."""
    extensions = [name.strip() for name in given.get(EXTENSIONS, "").split(",") if name.strip()]
    for name in extensions:
        if name not in (_BASIC_AUTH, _BASIC_AUTH.rpartition(".")[2]):
            raise OttlaError(f"{EXTENSIONS} has '{name}', which is not known here: there is {_BASIC_AUTH}.")
    path = given.get(CREDENTIALS, "").strip()
    if not path:
        if extensions:
            raise OttlaError(
                f"{EXTENSIONS} asks for logins: name in {CREDENTIALS} the file with a line USER=PASSWORD for each, as "
                "PropertyFileLoginModule of the JAAS configuration does."
            )
        return None
    found = read_properties(path)
    if not found:
        raise OttlaError(f"{path} ({CREDENTIALS}) names no user: write a line USER=PASSWORD for each.")
    for user, password in found.items():
        if not password or is_broken_hash(password):
            raise OttlaError(f"{path}: the password of '{user}' is empty, or no hash of `ottla registry password`.")
    return found
