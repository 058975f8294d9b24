"""Why a broker hung up: a port that speaks another security protocol than we were told does not say so.

It is asked once more, in the other ways, when a new connection broke before anything was got out of it. Whatever comes
of it is certain: a port that answers in plain text is no TLS port. No secret is sent in these questions.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.client.access import tls
from ottla.client.access.security import AccessRefused, Security, Tls, protocol_name
from ottla.common.errors import ErrorCode

_TIMEOUT_S = 5.0
# How long a server may take to say that it does not like our certificate.
_ALERT_TIMEOUT_S = 1.0
_ANSWER_BYTES_MAX = 1024 * 1024
_HEADER = struct.Struct(">ihhih")
_API_VERSIONS, _SASL_HANDSHAKE = 18, 17
# Only to see whether there is TLS at all: nothing is said over it.
_ANY_TLS = Tls(checks_certificate=False, checks_host_name=False)


def explained(error: OSError, host: str, port: int, security: Security) -> OSError | AccessRefused:
    """`error` itself, or a sentence where we know one."""
    address = f"{host}:{port}"
    if security.tls is not None and (known := tls.refusal(error, address)) is not None:
        return known
    if not isinstance(error, ConnectionError | ssl.SSLError):
        return error  # slow, or not there at all
    return _other_transport(host, port, security) or _late_alert(host, port, security.tls) or error


def _late_alert(host: str, port: int, wanted: Tls | None) -> AccessRefused | None:
    """TLS 1.3 tells what it thinks of a client's certificate after its handshake. A request that was sent meanwhile
    makes the system throw that word away, so here nothing is sent."""
    if wanted is None:
        return None
    try:
        with _connected(host, port, wanted) as link:
            link.settimeout(_ALERT_TIMEOUT_S)
            link.recv(1)
    except OSError as error:
        return tls.refusal(error, f"{host}:{port}")
    return None


def wants_sasl(host: str, port: int, security: Security) -> AccessRefused | None:
    """Whether that is why a broker hung up on the first request after ApiVersions."""
    try:
        with _connected(host, port, security.tls) as link:
            mechanisms = _mechanisms(link)
    except (OSError, ValueError, struct.error):
        return None
    if not mechanisms:
        return None
    wanted = protocol_name(has_tls=security.tls is not None, has_sasl=True)
    return AccessRefused(
        f"the broker at {host}:{port} wants SASL: set security.protocol to {wanted}, and sasl.mechanism to one that it "
        f"has ({', '.join(sorted(mechanisms))})."
    )


def _other_transport(host: str, port: int, security: Security) -> AccessRefused | None:
    has_tls = security.tls is not None
    try:
        with _connected(host, port, None if has_tls else _ANY_TLS) as link:
            if has_tls:
                _ask(link, _API_VERSIONS, 0, b"")
    except (OSError, ValueError):
        return None
    spoken = "plain text" if has_tls else "TLS"
    both = [protocol_name(has_tls=not has_tls, has_sasl=sasl) for sasl in (False, True)]
    return AccessRefused(
        f"the broker at {host}:{port} speaks {spoken} there, and security.protocol is {security.protocol}: set it to "
        f"{' or '.join(both)}, or use another of its ports."
    )


@contextmanager
def _connected(host: str, port: int, wanted: Tls | None) -> Iterator[socket.socket]:
    with socket.create_connection((host, port), _TIMEOUT_S) as plain:
        if wanted is None:
            yield plain
        else:
            with tls.secured(plain, wanted, host) as link:
                yield link


def _mechanisms(link: socket.socket) -> list[str]:
    """What a broker that wants SASL answers to a mechanism that nobody has; others answer with another error."""
    answer = _ask(link, _SASL_HANDSHAKE, 1, struct.pack(">h", 0))
    code, count = struct.unpack_from(">hi", answer)
    if code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return []
    at, found = 6, []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", answer, at)
        found.append(answer[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return found


def _ask(link: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """One request in a form that the oldest broker knows. Raises ValueError for what is no answer of a broker."""
    link.sendall(_HEADER.pack(_HEADER.size - 4 + len(body), key, version, 1, -1) + body)
    size, correlation_id = struct.unpack(">ii", _exactly(link, 8))
    if not 6 <= size <= _ANSWER_BYTES_MAX or correlation_id != 1:
        raise ValueError
    return _exactly(link, size - 4)


def _exactly(link: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = link.recv(size - len(received))
        if not piece:
            raise ConnectionResetError
        received += piece
    return received
