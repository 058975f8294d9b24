"""The `ssl.` settings of one listener, made into OpenSSL's context. What cannot be used is told in one sentence."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from ottla.client.access.java_stores import pem_store
from ottla.client.access.pem import tidied
from ottla.common.config import BrokerConfig, Listener
from ottla.common.config.listeners import SecurityProtocol
from ottla.common.errors import OttlaError
from ottla.common.renewed_tls import FileState, state_of

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_SUITES_OF_TLS_1_3 = ("TLS_AES_", "TLS_CHACHA20_")


class TlsSettings:
    def __init__(self, config: BrokerConfig, listener: Listener) -> None:
        self._config = config
        self._listener = listener

    def files(self) -> tuple[FileState, ...]:
        """Something else when a file has changed."""
        return tuple(state_of(path) for path in (self._text("keystore.location"), self._text("truststore.location")))

    def _value(self, name: str) -> object:
        return self._config.of_listener(self._listener.name, f"ssl.{name}")

    def _text(self, name: str) -> str:
        return str(self._value(name) or "")

    def try_out(self) -> None:
        """Raises OttlaError."""
        self.context()

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_COMPRESSION
        versions = [
            _VERSIONS[version] for version in self._config.of_listener(self._listener.name, "ssl.enabled.protocols")
        ]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        self._choose_ciphers(context)
        self._load_identity(context)
        self._load_authorities(context)
        return context

    def _choose_ciphers(self, context: ssl.SSLContext) -> None:
        chosen: tuple[str, ...] = self._config.of_listener(self._listener.name, "ssl.cipher.suites")
        if not chosen:
            return
        older = [_openssl_name(suite) for suite in chosen if not suite.startswith(_SUITES_OF_TLS_1_3)]
        if len(older) == len(chosen):
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        if not older:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            return
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise OttlaError(
                f"ssl.cipher.suites of listener {self._listener.name} has no cipher that OpenSSL knows: "
                f"{', '.join(chosen)}."
            ) from None

    def _load_identity(self, context: ssl.SSLContext) -> None:
        name, password = self._listener.name, self._text("key.password")
        key, chain = self._text("keystore.key"), self._text("keystore.certificate.chain")
        location = self._store("keystore")
        if bool(key) != bool(chain):
            raise OttlaError(f"Listener {name} has only one of ssl.keystore.key and ssl.keystore.certificate.chain.")
        if not key and not location:
            raise OttlaError(
                f"Listener {name} speaks TLS and has no certificate: set ssl.keystore.type=PEM and "
                "ssl.keystore.location to a PEM file with its key and certificates; `ottla security init` makes one."
            )
        try:
            if key:
                pem = tidied(key, "ssl.keystore.key", "PRIVATE KEY") + tidied(
                    chain, "ssl.keystore.certificate.chain", "CERTIFICATE"
                )
                with tempfile.TemporaryDirectory(prefix="ottla-tls-") as folder:  # readable for this user only
                    file = Path(folder, "identity.pem")
                    file.write_text(pem)
                    context.load_cert_chain(file, password=password)
            else:
                context.load_cert_chain(str(location), password=password)
        except ssl.SSLError as error:
            raise OttlaError(
                f"the key and certificate of listener {name} in {location or 'ssl.keystore.key'} cannot be used "
                f"({_reason(error)}): it must be PEM, the key must belong to the first certificate, and "
                "ssl.key.password is needed if it is encrypted."
            ) from None
        except OSError as error:
            raise OttlaError(f"ssl.keystore.location {location} of listener {name}: {error.strerror}.") from None

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        wanted = self._client_auth()
        location, text = self._store("truststore"), self._text("truststore.certificates")
        if wanted == "none":
            return
        if not location and not text:
            raise OttlaError(
                f"Listener {self._listener.name} wants certificates of clients (ssl.client.auth={wanted}) and trusts "
                "nobody: set ssl.truststore.type=PEM and ssl.truststore.location to the file of the CA."
            )
        try:
            if text:
                context.load_verify_locations(cadata=tidied(text, "ssl.truststore.certificates", "CERTIFICATE"))
            else:
                context.load_verify_locations(cafile=location)
        except ssl.SSLError as error:
            raise OttlaError(
                f"{location or 'ssl.truststore.certificates'} has no certificates that can be read as PEM: "
                f"{_reason(error)}."
            ) from None
        except OSError as error:
            raise OttlaError(
                f"ssl.truststore.location {location} of listener {self._listener.name}: {error.strerror}."
            ) from None
        context.verify_mode = _CLIENT_AUTH[wanted]
        # As in Java, whatever is in the store is trusted: it need not be the root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

    def _client_auth(self) -> str:
        """Where clients log in by SASL, a certificate is asked for only if the listener itself says so."""
        is_own = self._config.is_own(self._listener.name, "ssl.client.auth")
        if self._listener.protocol is SecurityProtocol.SASL_SSL and not is_own:
            return "none"
        return self._text("client.auth")

    def _store(self, which: str) -> str | None:
        given = {f"ssl.{which}.location": self._text(f"{which}.location"), f"ssl.{which}.type": ""}
        # By default the type is JKS, as in Kafka; a file whose name ends in .pem is one all the same.
        if self._config.is_own(self._listener.name, f"ssl.{which}.type") or self._config.is_set(f"ssl.{which}.type"):
            given[f"ssl.{which}.type"] = self._text(f"{which}.type")
        return pem_store(given, which)


def _openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite that may be given by its IANA name."""
    if not suite.startswith("TLS_"):
        return suite
    name = suite.removeprefix("TLS_").removeprefix("RSA_WITH_").replace("_WITH_", "_")
    name = name.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC_", "_")
    return name.replace("POLY1305_SHA256", "POLY1305").replace("_", "-")


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
