"""Delegation tokens as they are kept: whose they are and how long they are good. What proves them is not kept. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class DelegationToken:
    id: str
    # Principals: who is logged in with it, who asked for it, and who else may renew it.
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    # It cannot be renewed beyond this.
    max_ms: int

    def is_of(self, principal: str) -> bool:
        """Who may renew it, end it, and see it."""
        return principal in (self.owner, self.requester) or principal in self.renewers


def encode_token(token: DelegationToken) -> bytes:
    return json.dumps(asdict(token), separators=(",", ":")).encode()


def decode_token(data: bytes) -> DelegationToken:
    value = json.loads(data)
    return DelegationToken(**{**value, "renewers": tuple(value["renewers"])})
