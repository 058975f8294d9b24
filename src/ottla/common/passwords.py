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
    """Takes as long whatever is stored: the time tells neither which names there are nor how long a plain one is."""
    scheme, _, rest = stored.partition(":")
    is_hash = scheme == SCHEME
    salt, _, digest = (rest if is_hash else NOBODY.partition(":")[2]).partition(":")
    derived = hashlib.scrypt(given.encode(), salt=bytes.fromhex(salt), **_COST).hex()
    if is_hash:
        return hmac.compare_digest(derived, digest)
    return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), hashlib.sha256(stored.encode()).digest())


def is_broken_hash(stored: str) -> bool:
    """It says that it is a hash, and is none."""
    return stored.startswith(f"{SCHEME}:") and not _HASH.fullmatch(stored)
