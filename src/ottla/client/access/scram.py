"""The client's side of SCRAM (RFC 5802, RFC 7677): bytes in, bytes out.

    scram = Scram("SCRAM-SHA-256", "ada", "secret")
    challenge = ask(scram.first())
    outcome = ask(scram.final(challenge))
    scram.check(outcome)             # the server knows the password too

As in Kafka's own client, names and passwords are UTF-8 without SASLprep, and there is no channel binding.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING = "n,,"
# Fewer would make a stolen exchange cheap to break; more would let a server keep us busy for minutes.
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 1_000_000


class ScramError(Exception):
    """What is wrong with the server's answer, as a part of a sentence."""


class Scram:
    def __init__(self, mechanism: str, username: str, password: str, nonce: str | None = None) -> None:
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(24)).decode()
        self._first_bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, challenge: bytes) -> bytes:
        """The proof that we know the password. Raises ScramError."""
        fields = _fields(challenge)
        nonce, salt, iterations = fields.get("r", ""), _decoded(fields.get("s", "")), _count(fields.get("i", ""))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError("its nonce is not ours with something added")
        if not salt:
            raise ScramError("it sent no salt")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        without_proof = f"c={base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        spoken = b",".join((self._first_bare.encode(), challenge, without_proof.encode()))
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), spoken)
        proof = bytes(byte ^ other for byte, other in zip(key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), spoken)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, outcome: bytes) -> None:
        """Raises ScramError unless the server has proved that it knows the password."""
        signature = _decoded(_fields(outcome).get("v", ""))
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise ScramError("it does not know the password itself")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    try:
        fields = dict(part.split("=", 1) for part in message.decode().split(","))
    except ValueError:
        raise ScramError("its answer is not of SCRAM") from None
    if "e" in fields:
        raise ScramError(f"it says {fields['e'][:200]}")
    if "m" in fields:
        raise ScramError("it wants an extension that nobody knows")
    return fields


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("its answer is not of SCRAM") from None


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ScramError("it wants no sensible number of iterations")
    if not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise ScramError(f"it wants {text} iterations, where {ITERATIONS_MIN:,} to {ITERATIONS_MAX:,} are sensible")
    return int(text)
