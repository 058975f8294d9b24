"""Whom a signed token (JWT) names: issuer, audience, algorithm, signature and time are checked, and all of them have
to be there. The broker asks by OAUTHBEARER, the registry for the header `Authorization: Bearer`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from joserfc import jws
from joserfc.errors import JoseError

from ottla.security.logins import LoginRefused

# Signed with a private key: none of those that a public key could be taken for the secret of.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class TokenRules(NamedTuple):
    """Kafka's settings `sasl.oauthbearer.*`."""

    issuer: str
    audience: Collection[str]
    clock_skew_s: int = 30
    user_claim: str = "sub"

    def check(self, claims: Mapping[str, Any], now_s: float) -> None:
        """Raises LoginRefused for a token of another issuer, for somebody else, or of another time."""
        if claims.get("iss") != self.issuer:
            raise LoginRefused("Authentication failed: the token is of another issuer")
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if not any(isinstance(name, str) and name in self.audience for name in named):
            raise LoginRefused("Authentication failed: the token is for another audience")
        expires, begins = _time(claims.get("exp")), _time(claims.get("nbf", 0))
        if now_s >= expires + self.clock_skew_s:
            raise LoginRefused("Authentication failed: the token has expired")
        if now_s < begins - self.clock_skew_s:
            raise LoginRefused("Authentication failed: the token is not good yet")

    def user(self, claims: Mapping[str, Any]) -> str:
        user = claims.get(self.user_claim)
        if not isinstance(user, str) or not user:
            raise LoginRefused("Authentication failed: the token names no user")
        return user


def signed_claims(token: bytes, find_key: Callable[[str | None], Any]) -> Mapping[str, Any]:
    """What a token says that is signed with a key that is found. Raises LoginRefused."""

    def key_of(found: Any) -> Any:
        key_id = found.headers().get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise KeyError(key_id)
        return find_key(key_id)

    try:
        signed = jws.deserialize_compact(token, key_of, algorithms=list(ALGORITHMS))
        claims = json.loads(signed.payload)
    except (JoseError, ValueError, KeyError, TypeError, RecursionError):
        raise LoginRefused("Authentication failed: the token is not signed by a key that is trusted") from None
    if not isinstance(claims, dict):
        raise LoginRefused("Authentication failed: the token has no claims")
    return claims


def _time(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 2**53:
        raise LoginRefused("Authentication failed: the token does not say until when it is good")
    return value
