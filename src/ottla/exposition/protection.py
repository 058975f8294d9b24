"""TLS and a login for an endpoint, from files. Without either it is open to everybody who reaches it."""

from __future__ import annotations

import logging
import ssl
from typing import NamedTuple

from ottla.common.basic_logins import BasicLogins
from ottla.common.renewed_tls import from_files
from ottla.common.users_file import read_passwords

_LOG = logging.getLogger("ottla.exposition")


class Protection(NamedTuple):
    tls: ssl.SSLContext | None = None
    logins: BasicLogins | None = None


OPEN = Protection()


def protection(certificate: str | None, key: str | None, users: str | None) -> Protection:
    """PEM files, and a file of users. Raises OttlaError."""
    return Protection(
        None if not certificate else from_files(certificate, key or None, log=_LOG).served(),
        None if not users else BasicLogins(read_passwords(users)),
    )
