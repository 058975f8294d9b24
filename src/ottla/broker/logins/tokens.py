"""OAUTHBEARER (RFC 7628): a signed token says who the client is; the keys that it may be signed with are in a JWKS,
read again after `sasl.oauthbearer.jwks.endpoint.refresh.ms`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.access.jwks import TrustedKeys
from ottla.security.bearer_tokens import TokenRules, signed_claims
from ottla.security.logins import LoginRefused

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_AUTH = re.compile(rb"auth=bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)
_TOKEN_BYTES_MAX = 32 * 1024
_SECOND_MS = 1_000


class Tokens:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._keys = TrustedKeys(
            broker.config.sasl_oauthbearer_jwks_endpoint_url or "",
            setting="sasl.oauthbearer.jwks.endpoint.url",
            now_ms=broker.clock.monotonic_ms,
            log=logging.getLogger("ottla.server"),
            start=broker.run_in_thread,
        )

    def exchange(self) -> TokenExchange:
        self._keys.refresh(self._broker.config.sasl_oauthbearer_jwks_endpoint_refresh_ms)
        return TokenExchange(self)

    def signed_claims(self, token: bytes) -> Mapping[str, Any]:
        return signed_claims(token, self._keys.find)

    def now_s(self) -> float:
        return self._broker.clock.now_ms() / _SECOND_MS

    @property
    def rules(self) -> TokenRules:
        config = self._broker.config
        return TokenRules(
            config.sasl_oauthbearer_expected_issuer or "",
            config.sasl_oauthbearer_expected_audience,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_sub_claim_name,
        )


class TokenExchange:
    is_by_token = False  # one of somebody else's, which is as good as a password

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._expires_ms = 0
        # Only of a token that is signed as it should be: what any other says is anybody's word.
        self.claimed = ""
        self.user: str | None = None

    def answer(self, message: bytes) -> bytes:
        claims = self._tokens.signed_claims(_token_in(message))
        rules = self._tokens.rules
        named = claims.get(rules.user_claim)
        self.claimed = named if isinstance(named, str) else ""
        rules.check(claims, self._tokens.now_s())
        self._expires_ms = int(claims["exp"] * _SECOND_MS)
        self.user = rules.user(claims)
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
