"""What a console is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ottla.client.access.security_settings import parse_security
from ottla.client.settings import ClientSettings

CLIENT_ID = "ottla-console"


@dataclass(frozen=True)
class ConsoleSettings:
    bootstrap: str
    # librdkafka's settings for the cluster, those about TLS and SASL among them.
    client: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8080
    # By these names it is asked for, besides addresses and localhost.
    host_names: tuple[str, ...] = ()
    # The addresses of registry, Connect and metrics may have logins: those pages show are those of their clients.
    registry: str | None = None
    registry_ca: str | None = None
    registry_certificate: str | None = None
    # Properties `bearer.auth.*`.
    registry_bearer: str | None = None
    connect: tuple[str, ...] = ()
    connect_ca: str | None = None
    connect_certificate: str | None = None
    metrics: tuple[str, ...] = ()
    metrics_ca: str | None = None
    is_read_only: bool = False
    users_file: str | None = None
    # Users of the cluster log in with their own passwords, and what they do is done in their name.
    has_sasl_login: bool = False
    # Of those who log in by SASL: who may change what is not the cluster's (connectors, schemas, pipelines).
    admins: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    audit_file: Path | None = None
    pipelines: Path | None = None
    # Files that may be started from the console: code, so it is its operator who says where from.
    pipeline_files: Path | None = None
    # Files that say what business processes are expected to do.
    processes: tuple[Path, ...] = ()
    certificate: str | None = None
    key: str | None = None
    interval_s: float = 5.0

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"

    @property
    def has_login(self) -> bool:
        return self.users_file is not None or self.has_sasl_login

    def client_settings(self) -> ClientSettings:
        """Of the console itself."""
        return ClientSettings(
            bootstrap_servers=self.bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=15_000,
            api_timeout_ms=10_000,
            security=parse_security(self.client),
        )

    def client_of(self, user: str, password: str) -> Mapping[str, str]:
        """Of somebody who logs in at the cluster; TLS stays as it is."""
        protocol = "SASL_SSL" if "SSL" in self.client.get("security.protocol", "").upper() else "SASL_PLAINTEXT"
        mechanism = self.client.get("sasl.mechanism") or self.client.get("sasl.mechanisms") or "SCRAM-SHA-256"
        others = {name: value for name, value in self.client.items() if not name.startswith("sasl.")}
        return others | {
            "security.protocol": protocol,
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }

    def as_user(self, user: str, password: str) -> ConsoleSettings:
        return replace(self, client=self.client_of(user, password))
