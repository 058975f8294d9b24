"""The address that a broker on every interface gives to its clients."""

from __future__ import annotations

import socket

import pytest

from ottla.server import reachable
from ottla.server.reachable import LOCAL_ONLY, reachable_host

IPV4 = (socket.AF_INET,)
BOTH = (socket.AF_INET, socket.AF_INET6)


class Machine:
    """Stands in for the resolver and the routes of a machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[str]] = {}
        self.routes: dict[socket.AddressFamily, str] = {}
        self.fqdn = self.hostname = "host"
        monkeypatch.setattr(socket, "getfqdn", lambda: self.fqdn)
        monkeypatch.setattr(socket, "gethostname", lambda: self.hostname)
        monkeypatch.setattr(socket, "getaddrinfo", self._resolve)
        monkeypatch.setattr(reachable, "_outgoing_address", self.routes.get)

    def _resolve(self, name: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if name not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0))
            for one in self.names[name]
        ]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_the_canonical_name_as_kafka(machine: Machine) -> None:
    machine.fqdn = "host.example.com"
    machine.names = {"host.example.com": ["10.0.0.5"], "host": ["10.0.0.5"]}
    assert reachable_host(IPV4) == "host.example.com"


def test_the_short_name_where_the_canonical_one_leads_nowhere(machine: Machine) -> None:
    machine.fqdn = "localhost"
    machine.names = {"localhost": ["127.0.0.1"], "host": ["10.0.0.5"]}
    assert reachable_host(IPV4) == "host"


@pytest.mark.parametrize("resolves_to", [None, ["127.0.1.1"], ["::1"], ["fe80::1"]])
def test_the_outgoing_address_where_no_name_leads_to_this_machine(
    machine: Machine, resolves_to: list[str] | None
) -> None:
    if resolves_to is not None:
        machine.names["host"] = resolves_to
    machine.routes[socket.AF_INET] = "10.0.0.5"
    assert reachable_host(BOTH) == "10.0.0.5"


def test_a_name_of_another_family_than_the_socket_does_not_count(machine: Machine) -> None:
    machine.names["host"] = ["fd00::5"]
    machine.routes[socket.AF_INET] = "10.0.0.5"
    assert reachable_host(IPV4) == "10.0.0.5"
    assert reachable_host(BOTH) == "host"


def test_localhost_on_a_machine_without_a_network(machine: Machine) -> None:
    assert reachable_host(BOTH) == LOCAL_ONLY
