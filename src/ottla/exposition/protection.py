"""TLS and a login for an endpoint, from files. Without either it is open to everybody who reaches it."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from ottla.common.basic_logins import BasicLogins
from ottla.common.errors import OttlaError
from ottla.common.users_file import read_passwords


class Protection(NamedTuple):
    tls: ssl.SSLContext | None = None
    logins: BasicLogins | None = None


OPEN = Protection()


def protection(certificate: str | None, key: str | None, users: str | None) -> Protection:
    """PEM files, and a file of users. Raises OttlaError."""
    return Protection(
        None if not certificate else _context(certificate, key or None),
        None if not users else BasicLogins(read_passwords(users)),
    )


def _context(certificate: str, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError:
        raise OttlaError(
            f"{certificate} and {key or 'the key in it'} are no certificate with its key: give PEM files without a "
            "password that belong together."
        ) from None
    except OSError as error:
        raise OttlaError(f"cannot read {certificate} or {key or 'its key'}: {error.strerror}.") from None
    return context


def _no_password() -> str:
    """Else OpenSSL would ask the terminal."""
    return ""
