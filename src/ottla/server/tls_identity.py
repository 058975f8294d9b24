"""What a TLS listener shows its clients and whom of them it believes: from settings to OpenSSL's context.

The files are looked at when a client comes, at most once a second, so that a renewed certificate is used without a
restart. One that cannot be used is told of, and the one before it stays.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable

from ottla.broker.context import ANONYMOUS
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig, Listener
from ottla.common.config.names import LISTENER_PREFIX
from ottla.common.errors import OttlaError
from ottla.security.distinguished_name import subject_of
from ottla.security.principal_rules import parse_rules
from ottla.server.tls_settings import TlsSettings
from ottla.server.tls_transport import TlsTransport

log = logging.getLogger("ottla.server")

_LOOK_AGAIN_MS = 1_000


class TlsIdentity:
    def __init__(self, config: BrokerConfig, listener: Listener, clock: Clock) -> None:
        """Raises OttlaError, in one sentence, for settings that cannot be used."""
        self._listener = listener
        self._clock = clock
        self._settings = TlsSettings(config, listener)
        self._files = self._settings.files()
        self._context = self._settings.context()
        self._looked_ms = clock.monotonic_ms()
        rules = config.of_listener(listener.name, "ssl.principal.mapping.rules")
        self._user: Callable[[str], str] = parse_rules(rules)
        config.on_trial(lambda wanted: TlsSettings(wanted, listener).try_out())
        config.on_change(self._on_change)

    def transport(self, sock: socket.socket) -> TlsTransport:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_ms >= _LOOK_AGAIN_MS:
            self._looked_ms = now_ms
            self._look_again()
        return TlsTransport(self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False))

    def principal(self, certificate: bytes | None) -> str:
        """Raises NoPrincipal for a name that no rule is for."""
        return ANONYMOUS if certificate is None else f"User:{self._user(subject_of(certificate))}"

    def reason(self, error: OSError) -> str:
        """Why there was no handshake: OpenSSL's word for it, where it is its error."""
        return (isinstance(error, ssl.SSLError) and error.reason) or str(error)

    # --- what changes

    def _on_change(self, changed: frozenset[str]) -> None:
        own = f"{LISTENER_PREFIX}{self._listener.name.lower()}."
        if any(name.startswith(("ssl.", f"{own}ssl.")) for name in changed):
            self._renew("using other TLS settings")

    def _look_again(self) -> None:
        if self._settings.files() != self._files:
            self._renew("using a renewed certificate")

    def _renew(self, said: str) -> None:
        self._files = self._settings.files()
        try:
            self._context = self._settings.context()
        except OttlaError as error:
            log.error("keeping the certificate as it was: %s", error, extra={"listener": self._listener.name})
        else:
            log.info(said, extra={"listener": self._listener.name})
