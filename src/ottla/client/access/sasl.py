"""Who we are, said to a broker on a new connection: SaslHandshake v1, then SaslAuthenticate (KIP-152).

A session that the broker limits (`connections.max.reauth.ms`) ends with its connection; the next one begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.access.scram import Scram, ScramError
from ottla.client.access.security import AccessRefused, Sasl
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest

if TYPE_CHECKING:
    from ottla.client.connection import BrokerConnection

# Before it, what SASL says goes over the wire without frames.
_FRAMED_SINCE = 1


def authenticate(connection: BrokerConnection, sasl: Sasl) -> None:
    """Raises AccessRefused, with what the broker says about it."""
    _agree(connection, sasl)
    if sasl.mechanism == "PLAIN":
        _say(connection, sasl, f"\0{sasl.username}\0{sasl.password}".encode())
        return
    scram = Scram(sasl.mechanism, sasl.username, sasl.password)
    try:
        challenge = _say(connection, sasl, scram.first())
        scram.check(_say(connection, sasl, scram.final(challenge)))
    except ScramError as problem:
        raise AccessRefused(
            f"the broker at {connection.address} did not prove in {sasl.mechanism} that it knows '{sasl.username}' "
            f"({problem}): it may not be the broker that you mean."
        ) from None


def _agree(connection: BrokerConnection, sasl: Sasl) -> None:
    if not connection.knows("SaslHandshakeRequest"):
        raise _no_sasl(connection)
    if connection.version_of("SaslHandshakeRequest") < _FRAMED_SINCE:
        raise AccessRefused(f"the broker at {connection.address} is too old for SASL as it is spoken here (KIP-152).")
    answer = connection.call(SaslHandshakeRequest(mechanism=sasl.mechanism))
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AccessRefused(
            f"the broker at {connection.address} has no {sasl.mechanism}: set sasl.mechanism to one that it has "
            f"({', '.join(sorted(answer.mechanisms))})."
        )
    if answer.error_code:
        raise _no_sasl(connection)


def _no_sasl(connection: BrokerConnection) -> AccessRefused:
    return AccessRefused(
        f"the broker at {connection.address} asks nobody for SASL there: set security.protocol to SSL or PLAINTEXT, "
        "or use another of its ports."
    )


def _say(connection: BrokerConnection, sasl: Sasl, message: bytes) -> bytes:
    answer = connection.call(SaslAuthenticateRequest(auth_bytes=message))
    if answer.error_code:
        said = " ".join((answer.error_message or ErrorCode(answer.error_code).name).split()).rstrip(".")
        raise AccessRefused(
            f"the broker at {connection.address} did not let '{sasl.username}' in by {sasl.mechanism}: {said}."
        )
    return bytes(answer.auth_bytes or b"")
