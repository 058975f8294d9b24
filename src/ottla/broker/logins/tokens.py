"""OAUTHBEARER (RFC 7628): a signed token says who the client is; the keys that it may be signed with are in a JWKS.

Issuer, audience, algorithm, signature and time are checked, and all of them have to be there. The keys come from a
file, or from a URL that only the operator's settings name; they are read at the start, again after
`sasl.oauthbearer.jwks.endpoint.refresh.ms`, and once in a while when a token names a key that is not among them. What a
token says of where its keys are is ignored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ottla.common.errors import OttlaError
from ottla.security.logins import LoginRefused

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.server")

# Signed with a private key: none of those that a public key could be taken for the secret of.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_AUTH = re.compile(rb"auth=bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)
_TOKEN_BYTES_MAX = 32 * 1024
_JWKS_BYTES_MAX = 1024 * 1024
_FETCH_S = 10
# A key that is not there is looked for no more often.
_LOOK_AGAIN_MS = 60_000
_SECOND_MS = 1_000


class Tokens:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._url = broker.config.sasl_oauthbearer_jwks_endpoint_url or ""
        if urlsplit(self._url).scheme not in ("file", "https", "http"):
            raise OttlaError("sasl.oauthbearer.jwks.endpoint.url must be a file: or https: URL.")
        self._keys = _key_set(_read(self._url), self._url)
        self._read_ms = broker.clock.monotonic_ms()
        self._reading: asyncio.Task[None] | None = None

    def exchange(self) -> TokenExchange:
        config, now_ms = self._broker.config, self._broker.clock.monotonic_ms()
        if now_ms - self._read_ms >= config.sasl_oauthbearer_jwks_endpoint_refresh_ms:
            self._read_again(now_ms)
        return TokenExchange(self)

    def signed_claims(self, token: bytes) -> Mapping[str, Any]:
        """What a token says that is signed with a key of ours. Raises LoginRefused."""
        try:
            signed = jws.deserialize_compact(token, self._key, algorithms=list(ALGORITHMS))
            claims = json.loads(signed.payload)
        except (JoseError, ValueError, KeyError, TypeError):
            raise LoginRefused("Authentication failed: the token is not signed by a key that is trusted") from None
        if not isinstance(claims, dict):
            raise LoginRefused("Authentication failed: the token has no claims")
        return claims

    def _key(self, found: Any) -> Any:
        key_id = found.headers().get("kid")
        for key in self._keys.keys:
            if key_id is None and len(self._keys.keys) == 1:
                return key
            if key_id is not None and key.kid == key_id:
                return key
        now_ms = self._broker.clock.monotonic_ms()
        if now_ms - self._read_ms >= _LOOK_AGAIN_MS:
            self._read_again(now_ms)
        raise ValueError("no such key")

    def check(self, claims: Mapping[str, Any]) -> None:
        """Raises LoginRefused for a token of another issuer, for somebody else, or of another time."""
        config = self._broker.config
        now_s, skew_s = self._broker.clock.now_ms() / _SECOND_MS, config.sasl_oauthbearer_clock_skew_seconds
        if claims.get("iss") != config.sasl_oauthbearer_expected_issuer:
            raise LoginRefused("Authentication failed: the token is of another issuer")
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if not any(one in config.sasl_oauthbearer_expected_audience for one in named):
            raise LoginRefused("Authentication failed: the token is for another audience")
        expires, begins = _time(claims.get("exp")), _time(claims.get("nbf", 0))
        if now_s >= expires + skew_s:
            raise LoginRefused("Authentication failed: the token has expired")
        if now_s < begins - skew_s:
            raise LoginRefused("Authentication failed: the token is not good yet")

    @property
    def user_claim(self) -> str:
        return self._broker.config.sasl_oauthbearer_sub_claim_name

    def user(self, claims: Mapping[str, Any]) -> str:
        user = claims.get(self.user_claim)
        if not isinstance(user, str) or not user:
            raise LoginRefused("Authentication failed: the token names no user")
        return user

    def _read_again(self, now_ms: int) -> None:
        self._read_ms = now_ms
        if self._reading is None:
            self._reading = self._broker.loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        try:
            self._keys = _key_set(await self._broker.run_in_thread(_read, self._url), self._url)
        except OttlaError as error:
            log.error("keeping the keys of tokens as they were: %s", error)
        finally:
            self._reading = None


class TokenExchange:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._expires_ms = 0
        # Only of a token that is signed as it should be: what any other says is anybody's word.
        self.claimed = ""
        self.user: str | None = None

    def answer(self, message: bytes) -> bytes:
        claims = self._tokens.signed_claims(_token_in(message))
        named = claims.get(self._tokens.user_claim)
        self.claimed = named if isinstance(named, str) else ""
        self._tokens.check(claims)
        self._expires_ms = int(claims["exp"] * _SECOND_MS)
        self.user = self._tokens.user(claims)
        return b""

    def lifetime_ms(self, now_ms: int) -> int:
        return max(1, self._expires_ms - now_ms)


def _token_in(message: bytes) -> bytes:
    """`n,,` and then fields, each with a byte 1 before it: one of them is auth=Bearer TOKEN."""
    header, *fields = message.split(b"\x01") if len(message) <= _TOKEN_BYTES_MAX else [b""]
    found = [match for field in fields if (match := _AUTH.fullmatch(field)) is not None]
    if not header.startswith(b"n,") or len(found) != 1 or fields[-2:] != [b"", b""]:
        raise LoginRefused("Invalid OAUTHBEARER client first message")
    return found[0][1]


def _time(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 2**53:
        raise LoginRefused("Authentication failed: the token does not say until when it is good")
    return value


def _read(url: str) -> bytes:
    try:
        with urlopen(url, timeout=_FETCH_S) as answer:
            data: bytes = answer.read(_JWKS_BYTES_MAX)
            return data
    except (OSError, ValueError) as error:
        raise OttlaError(f"the keys of tokens cannot be read from {url}: {error}.") from None


def _key_set(data: bytes, url: str) -> KeySet:
    try:
        return KeySet.import_key_set(json.loads(data))
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise OttlaError(f"{url} is not a set of keys (JWKS): {error}.") from None
