"""Logins by HTTP's Basic scheme, against passwords that are hashed or plain."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from ottla.common.passwords import NOBODY, is_password

# Logins that are remembered; one can be written in several ways.
KNOWN_MAX = 1_000
# Logins of one address that are not looked at yet: those beyond are refused.
WAITING_MAX = 1_000


class BasicLogins:
    def __init__(self, passwords: Mapping[str, str | None]) -> None:
        """By name, as a file of users has them; None: this one does not log in by a password."""
        self._passwords = passwords
        # A hash takes tens of milliseconds: who was let in once is known by the digest of what was sent.
        self._known: dict[bytes, str] = {}
        self._secret = secrets.token_bytes(32)
        self._hashing = ThreadPoolExecutor(1, "passwords")
        self._turns = _Turns()

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
            if digest in self._known:  # the same login has come several times at once
                return self._known[digest]
            is_right = is_let and await asyncio.get_running_loop().run_in_executor(
                self._hashing, is_password, password, NOBODY if stored is None else stored
            )
        if stored is None or not is_right:
            return None
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = name
        return name


def client_of(scope: Mapping[str, Any]) -> str:
    """The address of a request, as ASGI has it."""
    client = scope.get("client")
    return client[0] if client else ""


class _Address:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class _Turns:
    """One after the other, and from each address one at a time: who guesses by the thousand waits behind himself."""

    def __init__(self) -> None:
        self._addresses: dict[str, _Address] = {}
        # First come, first served: no address is in it twice.
        self._all = asyncio.Lock()

    @asynccontextmanager
    async def of(self, address: str) -> AsyncIterator[bool]:
        """False: too many of this address wait."""
        own = self._addresses.setdefault(address, _Address())
        if own.waiting >= WAITING_MAX:
            yield False
            return
        own.waiting += 1
        try:
            async with own.lock, self._all:
                yield True
        finally:
            own.waiting -= 1
            if not own.waiting:
                del self._addresses[address]
