"""A secured broker for a test: what `Broker(security=...)` puts into its properties, and what clients need.

    Broker(security="SASL_SSL")                       # a certificate of its own, and the user "test"
    Broker(security=Security("SASL_PLAINTEXT", users={"ada": "secret"}, acls=True))

`broker.client_settings()` are librdkafka's settings of a client that gets in, `broker.java_settings()` those of Java's
and Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ottla.common.config.listeners import SecurityProtocol
from ottla.common.errors import OttlaError

_HOST = "127.0.0.1"
_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_DAYS = 2


@dataclass(frozen=True)
class Security:
    """`protocol` is SSL, SASL_PLAINTEXT or SASL_SSL. The first of `users` may do everything; with `acls` the others may
    do what ACLs allow. On SSL clients show certificates, one for each of the users."""

    protocol: str = "SASL_SSL"
    users: Mapping[str, str] = field(default_factory=lambda: {"test": "test-secret"}, repr=False)
    mechanism: str = "SCRAM-SHA-256"
    acls: bool = False

    def __post_init__(self) -> None:
        if self.protocol not in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise OttlaError(f"security is SSL, SASL_PLAINTEXT or SASL_SSL, not {self.protocol!r}.")
        if self.mechanism not in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            raise OttlaError(f"mechanism is SCRAM-SHA-256 or SCRAM-SHA-512, not {self.mechanism!r}.")
        if not self.users:
            raise OttlaError("security needs at least one user.")

    @property
    def first_user(self) -> str:
        return next(iter(self.users))

    @property
    def has_tls(self) -> bool:
        return SecurityProtocol[self.protocol].has_tls

    @property
    def has_sasl(self) -> bool:
        return SecurityProtocol[self.protocol].has_sasl


class SecuredFolder:
    """The certificates of one broker under test, in a folder that goes with it."""

    def __init__(self, security: Security, folder: Path) -> None:
        self._security = security
        self._folder = folder
        if security.has_tls:
            self._make_certificates()

    @property
    def ca(self) -> Path:
        return self._folder / "ca.pem"

    def identity(self, user: str) -> Path:
        return self._folder / f"user-{list(self._security.users).index(user)}.pem"

    def _make_certificates(self) -> None:
        from ottla.common.certificates import Authority  # needs the package cryptography

        self._folder.mkdir(parents=True, exist_ok=True)
        authority = Authority.new("Ottla test CA", _DAYS)
        self.ca.write_bytes(authority.issued.certificate_pem)
        hosts = ["localhost", _HOST, "::1"]
        (self._folder / "broker.pem").write_text(authority.issue("broker", _DAYS, hosts=hosts).pem)
        for user in self._security.users:
            self.identity(user).write_text(authority.issue(user, _DAYS).pem)

    def broker_properties(self, port: int) -> dict[str, str]:
        security = self._security
        found = {"listeners": f"{security.protocol}://{_HOST}:{port}"}
        if security.has_tls:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._folder / "broker.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.ca),
                "ssl.client.auth": "required",
                "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            }
        if security.has_sasl:
            users = [f"{security.mechanism}=[name={name},password={word}]" for name, word in security.users.items()]
            found |= {"sasl.enabled.mechanisms": security.mechanism, "ottla.first.users": ";".join(users)}
        if security.acls:
            found |= {"authorizer.class.name": _AUTHORIZER, "super.users": f"User:{security.first_user}"}
        return found

    def client_settings(self, bootstrap: str, user: str | None) -> dict[str, str]:
        """By librdkafka's names."""
        security, user = self._security, self._known(user)
        found = {"bootstrap.servers": bootstrap, "security.protocol": security.protocol}
        if security.has_tls:
            found["ssl.ca.location"] = str(self.ca)
        if security.has_sasl:
            found |= {
                "sasl.mechanism": security.mechanism,
                "sasl.username": user,
                "sasl.password": security.users[user],
            }
        else:
            identity = str(self.identity(user))
            found |= {"ssl.certificate.location": identity, "ssl.key.location": identity}
        return found

    def java_settings(self, bootstrap: str, user: str | None) -> dict[str, str]:
        security, user = self._security, self._known(user)
        found = {"bootstrap.servers": bootstrap, "security.protocol": security.protocol}
        if security.has_tls:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if security.has_sasl:
            login = f'{_LOGIN_MODULE} required username="{user}" password="{security.users[user]}";'
            return {**found, "sasl.mechanism": security.mechanism, "sasl.jaas.config": login}
        return {**found, "ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.identity(user))}

    def _known(self, user: str | None) -> str:
        if user is None:
            return self._security.first_user
        if user not in self._security.users:
            raise OttlaError(f"this broker has no user '{user}': it has {', '.join(self._security.users)}.")
        return user
