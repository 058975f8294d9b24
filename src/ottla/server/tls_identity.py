"""What a TLS listener shows its clients and whom of them it believes, as its settings say now and its files have it."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable

from ottla.broker.context import ANONYMOUS
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig, Listener
from ottla.common.config.names import LISTENER_PREFIX
from ottla.common.renewed_tls import RenewedContext
from ottla.security.distinguished_name import subject_of
from ottla.security.principal_rules import parse_rules
from ottla.server.tls_settings import TlsSettings
from ottla.server.tls_transport import TlsTransport

log = logging.getLogger("ottla.server")


class TlsIdentity:
    def __init__(self, config: BrokerConfig, listener: Listener, clock: Clock) -> None:
        """Raises OttlaError, in one sentence, for settings that cannot be used."""
        self._listener = listener
        settings = TlsSettings(config, listener)
        self._context = RenewedContext(
            settings.context, settings.files, log=log, about={"listener": listener.name}, now_ms=clock.monotonic_ms
        )
        rules = config.of_listener(listener.name, "ssl.principal.mapping.rules")
        self._user: Callable[[str], str] = parse_rules(rules)
        config.on_trial(lambda wanted: TlsSettings(wanted, listener).try_out())
        config.on_change(self._on_change)

    def transport(self, sock: socket.socket) -> TlsTransport:
        link = self._context.now().wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return TlsTransport(link)

    def principal(self, certificate: bytes | None) -> str:
        """Raises NoPrincipal for a name that no rule is for."""
        return ANONYMOUS if certificate is None else f"User:{self._user(subject_of(certificate))}"

    def reason(self, error: OSError) -> str:
        """Why there was no handshake: OpenSSL's word for it, where it is its error."""
        return (isinstance(error, ssl.SSLError) and error.reason) or str(error)

    def _on_change(self, changed: frozenset[str]) -> None:
        own = f"{LISTENER_PREFIX}{self._listener.name.lower()}."
        if any(name.startswith(("ssl.", f"{own}ssl.")) for name in changed):
            self._context.renew("using other TLS settings")
