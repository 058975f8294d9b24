"""What an instance of the registry is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.client.access.security_settings import parse_security
from ottla.client.address import ClusterAddress
from ottla.registry.state import DEFAULT_LEVEL


@dataclass(frozen=True)
class RegistrySettings:
    bootstrap: str
    # librdkafka's settings for the cluster, those about TLS and SASL among them.
    client: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8081
    # What other instances and their clients are told, if it is not where we listen.
    advertised_host: str | None = None
    topic: str = "_schemas"
    group: str = "schema-registry"
    default_level: str = DEFAULT_LEVEL
    # Answers questions and refuses every change, whoever asks.
    is_read_only: bool = False
    users_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    # Who may vouch for clients that log in with a certificate. Without a file of users everybody has to have one.
    client_ca: str | None = None
    # How others are trusted that forward to us, or that we forward to; None: as the system does.
    ca: str | None = None
    session_timeout_ms: int = 10_000
    heartbeat_ms: int = 3_000
    rebalance_timeout_ms: int = 30_000
    write_timeout_s: float = 30.0
    # Until a request is there as a whole.
    receive_timeout_s: float = 60.0
    request_bytes_max: int = 32 * 1024 * 1024
    # Of large requests that are not complete, all together.
    incomplete_bytes_max: int = 128 * 1024 * 1024

    @property
    def address(self) -> ClusterAddress:
        return ClusterAddress(self.bootstrap, parse_security(self.client))

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"
