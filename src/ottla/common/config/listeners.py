"""From `listeners`, `advertised.listeners` and `listener.security.protocol.map` to typed listeners.

The listeners that `controller.listener.names` names belong to a KRaft controller and are left
out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ottla.common.config.network import DEFAULT_PROTOCOLS
from ottla.common.errors import OttlaError

_ADDRESS = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[^\]]+\]|[^:/\[\]\s]*):(?P<port>\d{1,5})")

_IPV4 = re.compile(r"[0-9]+(\.[0-9]+){3}")


class SecurityProtocol(Enum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Listener:
    """Where the broker listens, and where it tells clients to connect.

    An empty `host` is every interface; `port` 0 is any free port. An empty `advertised_host` is this machine's name and
    an `advertised_port` of 0 the port that was bound: whoever binds the socket fills them in.
    """

    name: str
    protocol: SecurityProtocol
    host: str
    port: int
    advertised_host: str
    advertised_port: int


class _Address(NamedTuple):
    name: str
    host: str
    port: int


def parse_listeners(
    listeners: Sequence[str],
    advertised: Sequence[str] | None,
    protocol_map: str,
    controller_names: Sequence[str] = (),
) -> tuple[Listener, ...]:
    """The listeners that serve clients, in the order given."""
    protocols = _parse_protocol_map(protocol_map)
    ours = _without_controller(_parse_addresses("listeners", listeners), controller_names)
    if not ours:
        raise OttlaError("listeners names no listener for clients: add one such as PLAINTEXT://:9092.")
    shown = {
        a.name: a
        for a in _without_controller(_parse_addresses("advertised.listeners", advertised or ()), controller_names)
    }
    _check_ports_differ(ours)
    for name in shown:
        if name not in {address.name for address in ours}:
            raise OttlaError(f"advertised.listeners names {name}, which listeners does not.")
    return tuple(_listener(address, shown.get(address.name, address), protocols) for address in ours)


def _listener(bound: _Address, shown: _Address, protocols: dict[str, SecurityProtocol]) -> Listener:
    protocol = protocols.get(bound.name)
    if protocol is None:
        raise OttlaError(
            f"Listener {bound.name} has no security protocol: "
            f"add {bound.name}:PLAINTEXT to listener.security.protocol.map."
        )
    if shown is not bound and _is_wildcard(shown.host):
        raise OttlaError(
            f"advertised.listeners cannot use {shown.host}, which is no address that a client can connect to: "
            "name this machine as its clients do, or leave the host out."
        )
    host = "" if _is_wildcard(shown.host) else shown.host
    return Listener(bound.name, protocol, bound.host, bound.port, host, shown.port)


def _is_wildcard(host: str) -> bool:
    """Every interface: 0.0.0.0, :: and its longer spellings."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def listener_text(name: str, host: str, port: int) -> str:
    """One address as `listeners` and `advertised.listeners` have it."""
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"


def _parse_addresses(prop: str, texts: Sequence[str]) -> list[_Address]:
    addresses: list[_Address] = []
    for text in texts:
        address = _parse_address(prop, text)
        if address.name in {other.name for other in addresses}:
            raise OttlaError(f"{prop} names the listener {address.name} twice.")
        addresses.append(address)
    return addresses


def _parse_address(prop: str, text: str) -> _Address:
    match = _ADDRESS.fullmatch(text)
    if not match or int(match["port"]) > 65_535:
        raise OttlaError(
            f"Invalid address {text!r} in {prop}: expected NAME://HOST:PORT, such as PLAINTEXT://localhost:9092."
        )
    return _Address(match["name"].upper(), match["host"].strip("[]"), int(match["port"]))


def _without_controller(addresses: Sequence[_Address], controller_names: Sequence[str]) -> list[_Address]:
    controllers = {name.upper() for name in controller_names}
    return [address for address in addresses if address.name not in controllers]


def _check_ports_differ(addresses: Sequence[_Address]) -> None:
    """As Kafka: one port serves two listeners only if one address is IPv4 and the other IPv6."""
    for index, first in enumerate(addresses):
        for second in addresses[index + 1 :]:
            families = {_family(first.host), _family(second.host)}
            if first.port == second.port != 0 and families != {4, 6}:
                raise OttlaError(f"Listeners {first.name} and {second.name} use the same port {first.port}.")


def _family(host: str) -> int | None:
    """4 or 6 for an address, None for a name."""
    if ":" in host:
        return 6
    return 4 if _IPV4.fullmatch(host) else None


def _parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    found: dict[str, SecurityProtocol] = {}
    for pair in filter(None, (part.strip() for part in (text or DEFAULT_PROTOCOLS).split(","))):
        name, colon, protocol = (piece.strip() for piece in pair.rpartition(":"))
        if not (name and colon and protocol.upper() in SecurityProtocol.__members__):
            raise OttlaError(
                f"Invalid pair {pair!r} in listener.security.protocol.map: expected NAME:PROTOCOL with one of "
                f"{', '.join(SecurityProtocol.__members__)}."
            )
        found[name.upper()] = SecurityProtocol[protocol.upper()]
    return found
