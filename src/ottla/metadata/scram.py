"""What is kept of a user's password for SCRAM (RFC 5802): enough to check a proof, not to make one. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# The numbers by which the protocol names them.
MECHANISM_NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384


@dataclass(frozen=True, slots=True)
class ScramCredential:
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def credential_of(mechanism: str, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return ScramCredential(
        salt, hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name), iterations
    )


def salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def encode_credentials(credentials: Mapping[str, ScramCredential]) -> bytes:
    """All of one user, by mechanism."""
    value = {
        mechanism: {
            "salt": base64.b64encode(one.salt).decode(),
            "stored_key": base64.b64encode(one.stored_key).decode(),
            "server_key": base64.b64encode(one.server_key).decode(),
            "iterations": one.iterations,
        }
        for mechanism, one in credentials.items()
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_credentials(data: bytes) -> dict[str, ScramCredential]:
    return {
        mechanism: ScramCredential(
            base64.b64decode(one["salt"]),
            base64.b64decode(one["stored_key"]),
            base64.b64decode(one["server_key"]),
            int(one["iterations"]),
        )
        for mechanism, one in json.loads(data).items()
    }
