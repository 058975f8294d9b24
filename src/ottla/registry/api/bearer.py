"""Logins by bearer tokens: JWTs of an issuer that the operator trusts, as for a broker's OAUTHBEARER.

A token is checked once and known by its digest until it ends, or until the keys are read again.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import NamedTuple

from ottla.client.access.jwks import TrustedKeys
from ottla.common.clock import Clock, SystemClock
from ottla.registry.api.token_settings import TokenSettings
from ottla.security.bearer_tokens import TokenRules, signed_claims
from ottla.security.logins import LoginRefused

_LOG = logging.getLogger("ottla.registry")
_KNOWN_MAX = 1_000
_SECOND_MS = 1_000


class _Known(NamedTuple):
    user: str
    ends_s: float


class BearerTokens:
    def __init__(self, settings: TokenSettings, clock: Clock | None = None) -> None:
        """Reads the keys. Raises OttlaError."""
        self._clock = clock or SystemClock()
        self._rules = TokenRules(settings.issuer, settings.audience, settings.clock_skew_s, settings.user_claim)
        self._refresh_ms = settings.refresh_ms
        self._keys = TrustedKeys(
            settings.jwks_url,
            setting="jwks.endpoint.url of [oauthbearer]",
            now_ms=self._clock.monotonic_ms,
            log=_LOG,
            start=_in_thread,
        )
        self._secret = secrets.token_bytes(32)
        self._known: dict[bytes, _Known] = {}
        self._generation = self._keys.generation

    def user(self, token: bytes) -> str | None:
        """Whom it names; None for one that is not good."""
        self._keys.refresh(self._refresh_ms)
        if self._generation != self._keys.generation:
            self._generation = self._keys.generation
            self._known.clear()
        now_s = self._clock.now_ms() / _SECOND_MS
        digest = hmac.digest(self._secret, token, "sha256")
        if (known := self._known.get(digest)) is not None and now_s < known.ends_s:
            return known.user
        try:
            claims = signed_claims(token, self._keys.find)
            self._rules.check(claims, now_s)
            user = self._rules.user(claims)
        except LoginRefused as error:
            _LOG.info("a token is refused: %s", error)
            return None
        self._remember(digest, _Known(user, claims["exp"] + self._rules.clock_skew_s))
        return user

    def _remember(self, digest: bytes, known: _Known) -> None:
        self._known.pop(digest, None)
        while len(self._known) >= _KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = known


def _in_thread(work: Callable[[], None]) -> None:
    asyncio.get_running_loop().run_in_executor(None, work)
