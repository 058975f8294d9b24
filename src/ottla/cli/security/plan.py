"""What `security.json` of a folder says: which brokers and clients there are, where, with which secrets."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import asdict, dataclass, field

from ottla.common.errors import OttlaError

# Brokers of the folder are all one user, who may do everything.
BROKER_USER = "broker"
ADMIN = "admin"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
# As long as the name in a certificate can be; clients look at those beside it.
_COMMON_NAME_MAX = 64
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class BrokerPlan:
    id: int
    # The first is what clients are told.
    hosts: list[str]

    @property
    def name(self) -> str:
        return f"broker-{self.id}"

    @property
    def common_name(self) -> str:
        return self.hosts[0] if len(self.hosts[0]) <= _COMMON_NAME_MAX else self.name


@dataclass(frozen=True)
class ClientPlan:
    # Of the folder and the profile.
    name: str
    # As whom it comes in.
    user: str
    # None for one that has a certificate.
    password: str | None = field(default=None, repr=False)


@dataclass
class Plan:
    """Ports: the first is for logins by password, the next for certificates, the third for brokers of a cluster."""

    port: int
    first_users: str = field(repr=False)
    brokers: list[BrokerPlan] = field(default_factory=list)
    clients: list[ClientPlan] = field(default_factory=list)
    zookeeper: str | None = None
    zookeeper_login: str = field(default="", repr=False)
    days: int = 397

    @property
    def is_cluster(self) -> bool:
        return self.zookeeper is not None

    def bootstrap(self, client: ClientPlan) -> str:
        port = self.port if client.password is not None else self.port + 1
        return ",".join(f"{_bracketed(broker.hosts[0])}:{port}" for broker in self.brokers)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Raises ValueError, TypeError or KeyError for what is none."""
        value = json.loads(text)
        value["brokers"] = [BrokerPlan(**one) for one in value["brokers"]]
        value["clients"] = [ClientPlan(**one) for one in value["clients"]]
        return cls(**value)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine gets there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # which network of this machine: no other would know


def check_hosts(hosts: tuple[str, ...]) -> list[str]:
    for host in hosts:
        if not HOST.fullmatch(host) and not _is_address(host):
            raise OttlaError(
                f"'{host}' is not the name or address of a host: write it as clients do, without a port or scheme."
            )
    return list(dict.fromkeys(hosts))


def check_client_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise OttlaError(f"'{name}' is not a name for a client: use up to 64 letters, digits, '.', '_' and '-'.")
    if name == BROKER_USER:
        raise OttlaError(f"'{name}' is what brokers are called, who may do everything: choose another name.")
    return name


def check_zookeeper(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[!-~]+", text):
        raise OttlaError("--zookeeper is where ZooKeeper is: write it as HOST:PORT,HOST:PORT/PATH.")
    return text
