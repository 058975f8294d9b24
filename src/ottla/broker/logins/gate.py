"""The way in through a SASL listener: SaslHandshake and SaslAuthenticate first, then everything else.

Before its login a client may ask for ApiVersions and nothing more; anything else closes the connection. A login that
fails is answered after `connection.failed.authentication.delay.ms`, and then the connection ends. Behind SaslHandshake
v0, which older clients ask for, what mechanisms say comes as it is, each with its size before it, and a failed login
has no answer. A session that is limited (`connections.max.reauth.ms`, or a token that expires) goes on when the client
logs in again as the same user by the same mechanism (KIP-368); the first request after its end closes the connection.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.broker import audit
from ottla.broker.logins.mechanisms import Exchange, Mechanisms, try_out
from ottla.common.config.names import LISTENER_PREFIX
from ottla.common.errors import CloseConnection, ErrorCode, OttlaError
from ottla.protocol import codec
from ottla.protocol.codec import MalformedMessage, Message
from ottla.protocol.framing import API_VERSIONS, flexible_from, read_request_header, response_prefix, skip_header_tags
from ottla.protocol.messages import SaslAuthenticateResponse, SaslHandshakeResponse
from ottla.security.logins import LoginRefused

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.router import Router
    from ottla.server.client_end import Answer
    from ottla.server.connection import Connection

log = logging.getLogger("ottla.broker")

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
_VERSIONS = {SASL_HANDSHAKE: (0, 1), SASL_AUTHENTICATE: (0, 2)}
_SIZE = struct.Struct(">i")
# From this version on the answer says how long the session may last.
_LIFETIME_SINCE = 1
# A name that is longer than this is none of ours.
_USER_TOLD_MAX = 256
_AGAIN = "Cannot change principals during re-authentication"


@dataclass(slots=True)
class Login:
    """How far the login of one connection is."""

    exchange: Exchange | None = None
    mechanism: str = ""
    # After a handshake v0 what comes is no request.
    is_bare: bool = False
    # By which of them the client has got in.
    proven_by: str = ""
    # When the session ends, by the monotonic clock; 0 is never.
    ends_ms: int = 0
    # By a delegation token.
    is_by_token: bool = False


class SaslGate:
    def __init__(self, broker: Broker, router: Router, listener: str) -> None:
        self._broker = broker
        self._router = router
        self._listener = listener
        self._mechanisms = Mechanisms(broker, listener)
        broker.config.on_trial(lambda wanted: try_out(wanted, listener))
        broker.config.on_change(self._on_change)

    def _on_change(self, changed: frozenset[str]) -> None:
        """Other users of PLAIN, or other mechanisms: for logins that begin from now on."""
        own = f"{LISTENER_PREFIX}{self._listener.lower()}."
        if not any(name.startswith("sasl.") or (name.startswith(own) and ".sasl." in name) for name in changed):
            return
        try:
            self._mechanisms = Mechanisms(self._broker, self._listener, self._mechanisms)
        except OttlaError as error:
            log.error("keeping logins as they were: %s", error, extra={"listener": self._listener})

    def handle(self, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        """Every request of this listener."""
        if connection.is_known and frame[0] == 0 and frame[1] not in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            login: Login = connection.login
            if not login.ends_ms or self._broker.clock.monotonic_ms() < login.ends_ms:
                return self._router.handle(connection, frame)
            audit.tell(
                "session expired", connection.principal, connection.client_host, "ended", listener=self._listener
            )
            connection.close()
            return None
        try:
            login = connection.login
            if login is not None and login.is_bare:
                return self._go_on_bare(connection, frame)
            return self._log_in(connection, frame)
        except (MalformedMessage, CloseConnection) as error:
            self._tell_refused(connection, str(error))
            connection.close()
            return None

    def _tell_refused(self, connection: Connection, why: str) -> None:
        """`user` is who the client said it is, which is anybody's word; the principal is who it was known to be."""
        login: Login = connection.login
        connection.listener.logins.failed += 1
        facts = {"listener": self._listener}
        if login.mechanism:
            facts["mechanism"] = login.mechanism
        if login.exchange is not None and login.exchange.claimed:
            facts["user"] = login.exchange.claimed[:_USER_TOLD_MAX]
        known = connection.principal if connection.is_known else None
        audit.tell("login refused", known, connection.client_host, "failure", **facts, why=why)

    def _log_in(self, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        if connection.login is None:
            connection.login = Login()
        header = read_request_header(frame)
        if header.api_key == API_VERSIONS and not connection.is_known:
            return self._router.handle(connection, frame)
        low, high = _VERSIONS.get(header.api_key, (0, -1))
        if not low <= header.version <= high:
            raise CloseConnection("a request before the login")
        name = "SaslHandshakeRequest" if header.api_key == SASL_HANDSHAKE else "SaslAuthenticateRequest"
        at = skip_header_tags(frame, header.end) if header.version >= flexible_from(name) else header.end
        request = codec.decode(name, header.version, frame, at)
        is_flexible = header.version >= flexible_from(name)

        def framed(response: Message) -> bytes:
            body = codec.encode(response, header.version)
            return response_prefix(len(body), header.correlation_id, is_flexible) + bytes(body)

        if header.api_key == SASL_HANDSHAKE:
            return framed(self._begin(connection, request.mechanism, header.version))
        try:
            return framed(self._go_on(connection, bytes(request.auth_bytes), header.version))
        except LoginRefused as refused:
            failure = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(refused), auth_bytes=b""
            )
            self._tell_refused(connection, str(refused))
            return self._refuse(connection, framed(failure))

    def _go_on_bare(self, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        try:
            answer = self._go_on(connection, bytes(frame), 0).auth_bytes
        except LoginRefused as refused:
            self._tell_refused(connection, str(refused))
            return self._refuse(connection, None)
        return _SIZE.pack(len(answer)) + answer

    def _begin(self, connection: Connection, mechanism: str, version: int) -> SaslHandshakeResponse:
        exchange = self._mechanisms.begin(mechanism)
        if exchange is None:
            connection.login.exchange = None
            return SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=self._mechanisms.names
            )
        connection.login.exchange, connection.login.mechanism = exchange, mechanism
        if version == 0:
            if connection.is_known:
                raise CloseConnection("a login again by SaslHandshake v0")
            connection.login.is_bare = True
            connection.take_short_frames()
        return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=self._mechanisms.names)

    def _go_on(self, connection: Connection, message: bytes, version: int) -> SaslAuthenticateResponse:
        login: Login = connection.login
        exchange = login.exchange
        if exchange is None:
            raise CloseConnection("SaslAuthenticate without SaslHandshake")
        if connection.is_known and login.mechanism != login.proven_by:
            raise LoginRefused(
                f"SASL mechanism '{login.mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{login.proven_by}'"
            )
        answer = exchange.answer(message)
        if exchange.user is None:
            return SaslAuthenticateResponse(auth_bytes=answer)
        principal = f"User:{exchange.user}"
        if connection.is_known and principal != connection.principal:
            raise LoginRefused(f"{_AGAIN} from {connection.principal}")
        login.exchange, login.proven_by, login.is_bare = None, login.mechanism, False
        login.is_by_token = exchange.is_by_token
        lifetime_ms = self._lifetime_ms(exchange)
        login.ends_ms = self._broker.clock.monotonic_ms() + lifetime_ms if lifetime_ms else 0
        connection.context = None  # it says whether the login was by a token
        what = "login" if not connection.is_known else "login again"
        if not connection.is_known:
            connection.admit(principal)
        connection.listener.logins.succeeded += 1
        audit.tell(what, principal, connection.client_host, listener=self._listener, mechanism=login.mechanism)
        told_ms = lifetime_ms if version >= _LIFETIME_SINCE else 0
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=told_ms)

    def _lifetime_ms(self, exchange: Exchange) -> int:
        """0 is without end."""
        limits = [
            self._broker.config.of_listener(self._listener, "connections.max.reauth.ms"),
            exchange.lifetime_ms(self._broker.clock.now_ms()),
        ]
        return min((limit for limit in limits if limit > 0), default=0)

    async def _refuse(self, connection: Connection, answer: bytes | None) -> Answer:
        connection.end_with_answer()
        await self._broker.timers.sleep(self._broker.config.connection_failed_authentication_delay_ms)
        return answer
