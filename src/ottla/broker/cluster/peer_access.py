"""How this broker gets into the listener through which brokers talk to each other: TLS, a login, both or neither.

All of it comes from what is set for that listener: its key and certificate say who this broker is, its truststore whom
it believes, `listener.name.NAME.MECHANISM.sasl.jaas.config` as whom it logs in. Files and settings are looked at for
each connection, so that a renewed certificate or password counts from the next one on.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.client.access.scram import Scram, ScramError
from ottla.client.access.security import AccessRefused, Sasl, Security
from ottla.client.access.security_settings import parse_security
from ottla.common.config import BrokerConfig
from ottla.common.config.values import to_text
from ottla.common.errors import ErrorCode, OttlaError
from ottla.protocol.codec import Message
from ottla.protocol.messages import MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest

_TLS = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
)

Ask = Callable[[Message], Awaitable[Any]]


class RunInThread(Protocol):
    def __call__(self, work: Callable[[bytes], bytes], argument: bytes, /) -> Awaitable[bytes]: ...


def security_of_brokers(config: BrokerConfig) -> Security:
    """Raises OttlaError, in one sentence, for settings that cannot be used."""
    listener = config.listener_of_brokers
    given = {"security.protocol": listener.protocol.value}
    if listener.protocol.has_tls:
        for name in _TLS:
            if config.is_own(listener.name, name) or config.is_set(name):
                kind = config.known()[name].kind
                given[name] = to_text(kind, config.of_listener(listener.name, name)) or ""
    if listener.protocol.has_sasl:
        mechanism = config.of_listener(listener.name, "sasl.mechanism.inter.broker.protocol")
        given["sasl.mechanism"] = mechanism
        login = config.of_listener(listener.name, "sasl.jaas.config", mechanism)
        if not login:
            module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            raise OttlaError(
                f"Brokers log in to each other through listener {listener.name} by {mechanism}, and nothing says as "
                f"whom: set listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config to "
                f'org.apache.kafka.common.security.{module} required username="NAME" password="PASSWORD";'
            )
        given["sasl.jaas.config"] = login
    try:
        return parse_security(given)
    except OttlaError as error:
        raise OttlaError(f"Brokers cannot use listener {listener.name} among themselves: {error}") from None


class PeerAccess:
    def __init__(self, security: Callable[[], Security], run_in_thread: RunInThread) -> None:
        self._security = security
        self._run_in_thread = run_in_thread

    def tls(self) -> ssl.SSLContext | None:
        """Raises PeerUnavailable for files that cannot be used now."""
        try:
            wanted = self._security().tls
            if wanted is None:
                return None
            from ottla.client.access.tls import context_of  # a broker without TLS does not load OpenSSL

            return context_of(wanted)
        except OttlaError as error:
            raise PeerUnavailable(str(error)) from None

    async def log_in(self, ask: Ask, broker: int) -> int:
        """How long the session may last, in milliseconds; 0 is without end. Raises PeerUnavailable."""
        try:
            sasl = self._security().sasl
            if sasl is None:
                await _first_answer(ask, broker)
                return 0
            agreed = await ask(SaslHandshakeRequest(mechanism=sasl.mechanism))
            if agreed.error_code:
                offered = ", ".join(agreed.mechanisms)
                raise PeerUnavailable(f"broker {broker} has no {sasl.mechanism} to log in with: it has {offered}")
            return await self._prove(ask, sasl, broker)
        except OttlaError as error:
            raise PeerUnavailable(str(error)) from None

    async def _prove(self, ask: Ask, sasl: Sasl, broker: int) -> int:
        async def say(message: bytes) -> Any:
            answer = await ask(SaslAuthenticateRequest(auth_bytes=message))
            if answer.error_code:
                why = answer.error_message or ErrorCode(answer.error_code).name
                raise AccessRefused(f"broker {broker} did not let this one in as '{sasl.username}': {why}")
            return answer

        if sasl.mechanism == "PLAIN":
            return int((await say(f"\0{sasl.username}\0{sasl.password}".encode())).session_lifetime_ms)
        scram = Scram(sasl.mechanism, sasl.username, sasl.password)
        try:
            challenge = bytes((await say(scram.first())).auth_bytes)
            # As many rounds of a hash as the other side says: not on the loop.
            outcome = await say(await self._run_in_thread(scram.final, challenge))
            scram.check(bytes(outcome.auth_bytes))
        except ScramError as problem:
            raise AccessRefused(
                f"broker {broker} did not prove that it knows '{sasl.username}' ({problem}): it may be somebody else"
            ) from None
        return int(outcome.session_lifetime_ms)


async def _first_answer(ask: Ask, broker: int) -> None:
    """TLS 1.3 thinks about our certificate after its handshake, and who does not like it may just hang up."""
    try:
        await ask(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    except PeerUnavailable as error:
        raise PeerUnavailable(
            f"broker {broker} hung up after the TLS handshake and may not accept the certificate of this one, which is "
            f"that of ssl.keystore.location: {error}"
        ) from None
