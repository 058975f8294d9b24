"""What workers ask of each other for themselves is signed with a key that the leader keeps in the topic of
configurations, as Kafka Connect's is (KIP-507). What they forward carries the login that it came with instead."""

from __future__ import annotations

import base64
import hmac

SIGNATURE = "x-connect-authorization"
# Paths that are for workers only: what is asked there has to be signed.
BETWEEN_WORKERS = "/ottla/"


def signature(key: bytes, path: str, body: bytes) -> str:
    return base64.b64encode(hmac.digest(key, path.encode() + b"\n" + body, "sha256")).decode()


def is_signed(key: bytes | None, path: str, body: bytes, given: str | None) -> bool:
    if key is None or given is None:
        return False
    # As bytes: a header may have any, and texts are compared only if they are ASCII.
    return hmac.compare_digest(signature(key, path, body).encode(), given.encode())
