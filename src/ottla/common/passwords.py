"""Passwords as files of users keep them: a scrypt hash with its salt, or a plain one."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

SCHEME = "scrypt"
_COST = {"n": 2**14, "r": 8, "p": 1}
_HASH = re.compile(rf"{SCHEME}:([0-9a-f]{{2}})+:[0-9a-f]{{128}}")
# Takes as long to compare with as any other: whoever guesses names learns nothing from the time.
NOBODY = f"{SCHEME}:{'00' * 16}:{'00' * 64}"


def hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"{SCHEME}:{salt.hex()}:{hashlib.scrypt(password.encode(), salt=salt, **_COST).hex()}"


def is_password(given: str, stored: str) -> bool:
    scheme, _, rest = stored.partition(":")
    if scheme != SCHEME:
        return hmac.compare_digest(given.encode(), stored.encode())
    salt, _, digest = rest.partition(":")
    return hmac.compare_digest(hashlib.scrypt(given.encode(), salt=bytes.fromhex(salt), **_COST).hex(), digest)


def is_broken_hash(stored: str) -> bool:
    """It says that it is a hash, and is none."""
    return stored.startswith(f"{SCHEME}:") and not _HASH.fullmatch(stored)
