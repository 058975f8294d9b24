"""Logins by HTTP's Basic scheme, against passwords that are hashed or plain."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from ottla.common.passwords import NOBODY, is_password

# Logins that are remembered; one can be written in several ways.
KNOWN_MAX = 1_000


class BasicLogins:
    def __init__(self, passwords: Mapping[str, str | None]) -> None:
        """By name, as a file of users has them; None: this one does not log in by a password."""
        self._passwords = passwords
        # A hash takes tens of milliseconds: who was let in once is known by the digest of what was sent.
        self._known: dict[bytes, str] = {}
        self._secret = secrets.token_bytes(32)
        self._hashing = ThreadPoolExecutor(1, "passwords")

    async def name(self, header: bytes) -> str | None:
        """Whose login this value of `Authorization` is; None: nobody's."""
        digest = hmac.digest(self._secret, header, "sha256")
        if digest in self._known:
            return self._known[digest]
        scheme, _, encoded = header.partition(b" ")
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if scheme.lower() != b"basic" or not colon:
            return None
        # Whoever guesses waits as long for a name that is none, and holds up nobody but others who log in first.
        stored = self._passwords.get(name)
        is_right = await asyncio.get_running_loop().run_in_executor(
            self._hashing, is_password, password, NOBODY if stored is None else stored
        )
        if stored is None or not is_right:
            return None
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = name
        return name
