"""How a client gets into a cluster: TLS, SASL, both or neither. Values only; `security_settings` makes them.

They are pickled to executors and are part of the keys under which connections are kept, so they are frozen. A secret is
never part of a `repr`: those end up in logs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.common.errors import OttlaError


class AccessRefused(OttlaError):
    """The cluster does not let us in, or we do not trust it. Asking again would change nothing."""


@dataclass(frozen=True)
class Tls:
    """Whom we trust and who we are. Files are read where the connection is made, which may be an executor."""

    # Without either of the two the system's authorities are trusted.
    ca_location: str | None = None
    ca_pem: str | None = None
    # A file of certificates, and of the key too if no other file has it.
    certificate_location: str | None = None
    key_location: str | None = None
    # A key and its certificates as text.
    identity_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_certificate: bool = True
    checks_host_name: bool = True
    # Of TLSv1.2 and TLSv1.3, those that may be spoken.
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True)
class Sasl:
    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None

    @property
    def protocol(self) -> str:
        """As `security.protocol` names it."""
        return protocol_name(has_tls=self.tls is not None, has_sasl=self.sasl is not None)


def protocol_name(*, has_tls: bool, has_sasl: bool) -> str:
    transport = "SSL" if has_tls else "PLAINTEXT"
    return f"SASL_{transport}" if has_sasl else transport


PLAIN_TEXT = Security()
