"""What a broker that listens on every interface tells its clients to connect to.

Kafka takes the canonical name of the host. So do we, if that name leads to an address which others may have a way to:
on many machines it is an alias of the loopback interface, or of nothing at all. Then it is the address that this
machine's own traffic to other networks leaves from.
"""

from __future__ import annotations

import ipaddress
import socket

LOCAL_ONLY = "localhost"
# Addresses of documentation (RFC 5737, RFC 3849): nothing is sent to them, the kernel is only asked for the route.
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def reachable_host(families: tuple[socket.AddressFamily, ...]) -> str:
    """A name or address of this machine that others can use, of one of these families; LOCAL_ONLY if there is none."""
    for name in dict.fromkeys((socket.getfqdn(), socket.gethostname())):
        if any(_may_be_reached(address) for address in _addresses(name, families)):
            return name
    for family in families:
        address = _outgoing_address(family)
        if address is not None and _may_be_reached(address):
            return address
    return LOCAL_ONLY


def _addresses(name: str, families: tuple[socket.AddressFamily, ...]) -> list[str]:
    try:
        infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]) for family, _, _, _, address in infos if family in families]


def _may_be_reached(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return not (found.is_loopback or found.is_unspecified or found.is_link_local)


def _outgoing_address(family: socket.AddressFamily) -> str | None:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((_ELSEWHERE[family], 9))
            return str(sock.getsockname()[0])
    except OSError:
        return None
