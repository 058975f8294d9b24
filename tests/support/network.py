"""A small network of its own for brokers as processes, whose links can be cut one by one and in one direction.

    with Network(3) as network:
        network.prefix(1)             # runs a command on host 1, which has the address network.address(1)
        network.cut(1, 2)             # what host 1 sends to host 2 is lost, in silence; the other direction works
        network.heal()

Each host is a network namespace with a veth to a bridge. A cut is an entry in the sender's table of neighbours that
leads nowhere: packets leave and arrive at nobody, as behind a broken switch, and neither end is told. `OUTSIDE`, where
the tests and their clients are, and `STORE`, for a ZooKeeper of the tests, are two addresses of the bridge.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import count
from types import TracebackType
from typing import Self

import pytest

OUTSIDE, STORE = 254, 253
_NOWHERE = "02:00:00:00:00:99"
_numbers = count()


def why_no_network() -> str | None:
    """One sentence when networks cannot be made here, None when they can."""
    if os.geteuid() != 0:
        return "network cuts need root, for network namespaces"
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        return "network cuts need the commands ip (iproute2) and nsenter (util-linux)"
    trial = f"ottla-{os.getpid()}-trial"
    made = subprocess.run(["ip", "netns", "add", trial], capture_output=True, text=True)
    if made.returncode != 0:
        return f"network cuts need network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", trial], check=True)
    return None


def require_network() -> None:
    reason = why_no_network()
    if reason is not None:
        pytest.skip(reason)


class Network:
    def __init__(self, hosts: int) -> None:
        self._hosts = range(1, hosts + 1)
        # A subnet and names that no other network on this machine has: names of links have 15 letters at most.
        self._name = f"o{os.getpid() % 1_000_000:x}{next(_numbers)}"
        self._subnet = f"10.{100 + os.getpid() % 100}.{next(_numbers) % 250}"

    def address(self, host: int) -> str:
        return f"{self._subnet}.{host}"

    def prefix(self, host: int) -> list[str]:
        """Before a command that should run there; it stays the same process."""
        return ["nsenter", f"--net=/run/netns/{self._name}-{host}"]

    # --- faults

    def cut(self, sender: int, receiver: int) -> None:
        """What one sends to the other is lost from now on."""
        self._neighbour("replace", sender, receiver, "lladdr", _NOWHERE, "nud", "permanent")

    def cut_both(self, one: int, other: int) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def heal(self) -> None:
        for sender in self._hosts:
            for receiver in (*self._hosts, OUTSIDE, STORE):
                if sender != receiver:
                    self._neighbour("del", sender, receiver, check=False)
                    self._neighbour("del", receiver, sender, check=False)

    def slow_down(self, host: int, kbit_per_s: int) -> None:
        """So much leaves the host at most."""
        rate = ["rate", f"{kbit_per_s}kbit", "burst", "16kb", "latency", "2s"]
        self._on(host, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *rate)

    def full_speed(self, host: int) -> None:
        self._on(host, "tc", "qdisc", "del", "dev", "eth0", "root")

    def _neighbour(self, verb: str, sender: int, receiver: int, *more: str, check: bool = True) -> None:
        device = self._name if sender in (OUTSIDE, STORE) else "eth0"
        self._on(sender, "ip", "neigh", verb, self.address(receiver), *more, "dev", device, check=check)

    # --- life

    def __enter__(self) -> Self:
        try:
            _run("ip", "link", "add", self._name, "type", "bridge")
            _run("ip", "addr", "add", f"{self.address(OUTSIDE)}/24", "dev", self._name)
            _run("ip", "addr", "add", f"{self.address(STORE)}/24", "dev", self._name)
            _run("ip", "link", "set", self._name, "up")
            for host in self._hosts:
                self._add(host)
        except BaseException:
            self.close()
            raise
        return self

    def _add(self, host: int) -> None:
        space, link = f"{self._name}-{host}", f"{self._name}h{host}"
        _run("ip", "netns", "add", space)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        _run("ip", "link", "set", link, "master", self._name, "up")
        self._on(host, "ip", "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        self._on(host, "ip", "link", "set", "eth0", "up")
        self._on(host, "ip", "link", "set", "lo", "up")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for host in self._hosts:
            _run("ip", "netns", "del", f"{self._name}-{host}", check=False)
        _run("ip", "link", "del", self._name, check=False)

    def _on(self, host: int, *command: str, check: bool = True) -> None:
        _run(*([] if host in (OUTSIDE, STORE) else self.prefix(host)), *command, check=check)


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
