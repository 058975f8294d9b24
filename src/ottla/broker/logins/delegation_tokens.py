"""Delegation tokens (KIP-48): how they are made, renewed and ended, and how somebody logs in with one.

A token is an id, and the HMAC of that id under `delegation.token.secret.key`, which all brokers know and no store does.
Whoever has both logs in by SCRAM with the id as name and the HMAC in base 64 as password, and is its owner then.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.broker.context import ANONYMOUS, RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import topic_id_text
from ottla.common.random_ids import random_topic_id
from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage
from ottla.metadata.scram import ITERATIONS_MIN, ScramCredential, credential_of, salted
from ottla.metadata.tokens import DelegationToken, encode_token
from ottla.metastore.port import Create, Delete, Set
from ottla.security.logins import TokenLogin

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_SALT_BYTES = 20


class DelegationTokens:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        secret = broker.config.delegation_token_secret_key
        self._secret = None if not secret else secret.encode()
        self._seen: ClusterImage | None = None
        # What proves each token, and the tokens by that.
        self._hmacs: dict[str, bytes] = {}
        self._by_hmac: dict[bytes, str] = {}
        # Made when somebody first logs in with it: it takes thousands of rounds of a hash.
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    @property
    def is_on(self) -> bool:
        return self._secret is not None

    def on_image(self, _: ClusterImage, image: ClusterImage) -> None:
        if self._secret is None or (self._seen is not None and image.tokens is self._seen.tokens):
            self._seen = image
            return
        self._seen = image
        self._hmacs = {token: self._hmacs.get(token) or self._hmac_of(token) for token in image.tokens}
        self._by_hmac = {proof: token for token, proof in self._hmacs.items()}
        self._credentials = {key: kept for key, kept in self._credentials.items() if key[0] in image.tokens}

    def _hmac_of(self, token_id: str) -> bytes:
        assert self._secret is not None
        return hmac.digest(self._secret, token_id.encode(), hashlib.sha512)

    def hmac_of(self, token: DelegationToken) -> bytes:
        return self._hmacs[token.id]

    # --- logging in

    def login(self, token_id: str, mechanism: str) -> TokenLogin | None:
        token = self._broker.image.tokens.get(token_id) if self.is_on else None
        if token is None or token.expires_ms < self._broker.clock.now_ms():
            return None
        key = token_id, mechanism
        if key not in self._credentials:
            password, salt = base64.b64encode(self._hmacs[token_id]).decode(), secrets.token_bytes(_SALT_BYTES)
            self._credentials[key] = credential_of(
                mechanism, salted(mechanism, password, salt, ITERATIONS_MIN), salt, ITERATIONS_MIN
            )
        return TokenLogin(self._credentials[key], token.owner.partition(":")[2], token.expires_ms)

    # --- making and changing them

    def may_be_asked(self, context: RequestContext) -> bool:
        """As in Kafka: not by somebody who has not said who they are, nor by one who only has a token. Another broker
        has looked already."""
        if context.is_forwarded:
            return True
        (protocol,) = [
            endpoint.protocol for endpoint in self._broker.config.endpoints if endpoint.name == context.listener
        ]
        has_name = protocol.has_sasl or (protocol.has_tls and context.principal != ANONYMOUS)
        return has_name and not context.is_by_token

    async def create(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int, by: Requester
    ) -> DelegationToken:
        config, now_ms = self._broker.config, self._broker.clock.now_ms()
        lifetime_ms = config.delegation_token_max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        token = DelegationToken(
            id=topic_id_text(random_topic_id()),  # a UUID as Kafka writes it
            owner=owner,
            requester=requester,
            renewers=tuple(renewers),
            issued_ms=now_ms,
            expires_ms=now_ms + min(lifetime_ms, config.delegation_token_expiry_time_ms),
            max_ms=now_ms + lifetime_ms,
        )

        async def change() -> None:
            await self._broker.topics.commit_and_adopt([Create(nodes.token_path(token.id), encode_token(token))])

        await self._broker.topics.change(change(), by)
        return token

    async def renew(self, proof: bytes, principal: str, period_ms: int, by: Requester) -> DelegationToken:
        longest_ms = self._broker.config.delegation_token_expiry_time_ms
        return await self._change(proof, principal, min(period_ms, longest_ms) if period_ms > 0 else longest_ms, by)

    async def expire(self, proof: bytes, principal: str, period_ms: int, by: Requester) -> DelegationToken:
        """A period below zero ends it now."""
        return await self._change(proof, principal, period_ms if period_ms >= 0 else None, by)

    async def _change(self, proof: bytes, principal: str, period_ms: int | None, by: Requester) -> DelegationToken:
        """`period_ms` None: it is to go. Raises ApiError."""

        async def change() -> DelegationToken:
            now_ms = self._broker.clock.now_ms()
            token = self._broker.image.tokens.get(self._by_hmac.get(proof, ""))
            if token is None:
                raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            if not token.is_of(principal):
                raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
            if period_ms is None:
                await self._broker.topics.commit_and_adopt([Delete(nodes.token_path(token.id))])
                return replace(token, expires_ms=now_ms)
            if min(token.expires_ms, token.max_ms) < now_ms:
                raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            changed = replace(token, expires_ms=min(token.max_ms, now_ms + period_ms))
            await self._broker.topics.commit_and_adopt([Set(nodes.token_path(token.id), encode_token(changed))])
            return changed

        return await self._broker.topics.change(change(), by)

    async def remove_expired(self) -> None:
        """A chore of the controller."""
        if not self._broker.is_controller:
            return

        async def change() -> None:
            now_ms = self._broker.clock.now_ms()
            gone = [token.id for token in self._broker.image.tokens.values() if token.expires_ms < now_ms]
            await self._broker.topics.commit_and_adopt([Delete(nodes.token_path(token)) for token in gone])

        await self._broker.topics.change(change())
