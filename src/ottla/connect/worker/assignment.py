"""Who runs which connector: decided by the group's leader, purely, from what members tell.

A connector stays where it runs. One that has to move, because somebody has more than his share, is first taken away:
its worker stops it and joins again, and only then another one gets it, so that it never runs twice (KIP-415).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_VERSION = 1


class Told(NamedTuple):
    """What a member tells of itself."""

    url: str
    running: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return json.dumps({"version": _VERSION, "url": self.url, "running": list(self.running)}).encode()

    @staticmethod
    def decode(data: bytes) -> Told:
        tree = json.loads(data)
        return Told(str(tree["url"]), tuple(tree["running"]))


class Share(NamedTuple):
    """What a member is told."""

    leader_url: str
    connectors: tuple[str, ...]

    def encode(self) -> bytes:
        return json.dumps(
            {"version": _VERSION, "leader": self.leader_url, "connectors": list(self.connectors)}
        ).encode()

    @staticmethod
    def decode(data: bytes) -> Share:
        tree = json.loads(data)
        return Share(str(tree["leader"]), tuple(tree["connectors"]))


def shares(members: Mapping[str, Told], connectors: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By member id."""
    wanted = sorted(set(connectors))
    order = sorted(members, key=lambda member: (members[member].url, member))
    most = -(-len(wanted) // len(order))
    given: dict[str, list[str]] = {member: [] for member in order}
    homeless: list[str] = []
    for name in wanted:
        holders = [member for member in order if name in members[member].running]
        if not holders:
            homeless.append(name)
        elif len(given[holders[0]]) < most:
            given[holders[0]].append(name)
        # Else it is taken away from its holder, and given to somebody once that has stopped it.
    for name in homeless:
        given[min(order, key=lambda member: (len(given[member]), order.index(member)))].append(name)
    return {member: tuple(names) for member, names in given.items()}
