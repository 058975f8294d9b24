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
from ottla.common.turns_by_address import TurnsByAddress

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
        # One of each address, and first come, first served among those.
        self._turns, self._turn = TurnsByAddress(1), asyncio.Lock()

    async def name(self, header: bytes, address: str) -> str | None:
        """Whose login this value of `Authorization` is; None: nobody's. `address`: where the client is."""
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
        # Whoever guesses waits as long for a name that is none, and holds up those of the same address.
        stored = self._passwords.get(name)
        async with self._turns.of(address) as is_let:
            if not is_let:
                return None
            async with self._turn:
                if digest in self._known:  # the same login has come several times at once
                    return self._known[digest]
                is_right = await asyncio.get_running_loop().run_in_executor(
                    self._hashing, is_password, password, NOBODY if stored is None else stored
                )
        if stored is None or not is_right:
            return None
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = name
        return name
