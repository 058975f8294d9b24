"""What somebody shows by TLS, from files that are renewed while the process runs.

The files are looked at when a connection is made, at most once a second, so that a renewed certificate is used without
a restart. One that cannot be used is told of, and the one before it stays.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

from ottla.common.errors import OttlaError

_LOOK_AGAIN_MS = 1_000
_MS_NS = 1_000_000

FileState = tuple[int, int, int]


class RenewedContext:
    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Callable[[], tuple[FileState, ...]],
        *,
        log: logging.Logger,
        about: Mapping[str, object] | None = None,
        now_ms: Callable[[], int] = lambda: monotonic_ns() // _MS_NS,
    ) -> None:
        """`make` raises OttlaError for files that cannot be used, and so does this; `about` stands in the log."""
        self._make, self._state_of_files = make, files
        self._log, self._about = log, about
        self._now_ms = now_ms
        self._files = files()
        self._context = make()
        self._looked_ms = now_ms()

    def now(self) -> ssl.SSLContext:
        """For a connection that is made."""
        now_ms = self._now_ms()
        if now_ms - self._looked_ms >= _LOOK_AGAIN_MS:
            self._looked_ms = now_ms
            if self._state_of_files() != self._files:
                self.renew("using a renewed certificate")
        return self._context

    def renew(self, said: str) -> None:
        # Before they are read: what changes meanwhile is seen the next time.
        self._files = self._state_of_files()
        try:
            self._context = self._make()
        except OttlaError as error:
            self._log.error("keeping the certificate as it was: %s", error, extra=self._about)
        else:
            self._log.info(said, extra=self._about)

    def served(self) -> ssl.SSLContext:
        """For whoever is given one context for good."""
        return _Served(self.now)


class _Served(ssl.SSLContext):
    """Each connection belongs to the context that is good when it comes, with the sessions of that one: what one before
    it had agreed on is not resumed. To exchange the context amid a handshake would keep the sessions of the first, and
    with them clients whose authority is gone."""

    _now: Callable[[], ssl.SSLContext]

    def __new__(cls, now: Callable[[], ssl.SSLContext]) -> _Served:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made._now = now
        return made

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return self._now().wrap_bio(*args, **kwargs)


def from_files(
    certificate: str,
    key: str | None = None,
    password: str | None = None,
    *,
    client_ca: str | None = None,
    requires_client: bool = False,
    log: logging.Logger,
) -> RenewedContext:
    """PEM files, the key in that of the certificate or beside it; `client_ca` vouches for clients that show one, which
    they must if it is required. Raises OttlaError."""

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION
        _show(context, certificate, key, password)
        if client_ca is not None:
            _trust(context, client_ca)
            context.verify_mode = ssl.CERT_REQUIRED if requires_client else ssl.CERT_OPTIONAL
        return context

    return RenewedContext(make, lambda: tuple(map(state_of, (certificate, key, client_ca))), log=log)


def to_others(
    ca: str | None, certificate: str | None = None, key: str | None = None, *, log: logging.Logger
) -> RenewedContext:
    """For connections to others: whom to trust, None being whom the system trusts, and what to show them. Raises
    OttlaError."""

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context() if ca is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if ca is not None:
            _trust(context, ca)
        if certificate is not None:
            _show(context, certificate, key, None)
        return context

    return RenewedContext(make, lambda: tuple(map(state_of, (ca, certificate, key))), log=log)


def _show(context: ssl.SSLContext, certificate: str, key: str | None, password: str | None) -> None:
    try:
        # Without a password OpenSSL would ask the terminal.
        context.load_cert_chain(certificate, key, password=lambda: password or "")
    except ssl.SSLError:
        raise OttlaError(
            f"{certificate} and {key or 'the key in it'} are no certificate with its key: give PEM files that "
            f"belong together, {'with this password' if password else 'without a password'}."
        ) from None
    except OSError as error:
        raise OttlaError(f"cannot read {certificate} or {key or 'its key'}: {error.strerror}.") from None


def _trust(context: ssl.SSLContext, ca: str) -> None:
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError:
        raise OttlaError(f"{ca} has no certificates that can be read as PEM.") from None
    except OSError as error:
        raise OttlaError(f"cannot read {ca}: {error.strerror}.") from None


def state_of(path: str | None) -> FileState:
    """Something else when the file has changed. A copy may keep the time of what it is a copy of, and then has another
    number or size."""
    try:
        found = os.stat(path) if path else None
    except OSError:
        return (-1, 0, 0)
    return (0, 0, 0) if found is None else (found.st_mtime_ns, found.st_ino, found.st_size)
