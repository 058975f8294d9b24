"""A SCRAM login by hand, with whatever extensions and mistakes a test wants."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from ottla.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.support.raw_client import RawClient

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def say(client: RawClient, message: bytes) -> Any:
    return client.call(SaslAuthenticateRequest(auth_bytes=message), 2)


def log_in(
    client: RawClient,
    user: str,
    password: str,
    *,
    mechanism: str = "SCRAM-SHA-256",
    nonce: str = "nonce",
    extensions: str = "",
) -> Any:
    """The last answer: its error code says whether the client is in."""
    assert client.call(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    bare = f"n={user},r={nonce}{extensions}"
    challenge = say(client, f"n,,{bare}".encode())
    if challenge.error_code:
        return challenge
    return say(client, final(bare, bytes(challenge.auth_bytes).decode(), password, mechanism))


def final(
    bare: str, challenge: str, password: str, mechanism: str = "SCRAM-SHA-256", nonce: str | None = None
) -> bytes:
    """The proof that somebody knows the password."""
    name = HASHES[mechanism]
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac(name, password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(salted, b"Client Key", name)
    without_proof = f"c=biws,r={nonce if nonce is not None else fields['r']}"
    spoken = f"{bare},{challenge},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(name, key).digest(), spoken, name)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    return f"{without_proof},p={proof}".encode()
