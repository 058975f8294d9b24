"""Which instance writes: the members of a group of protocol type `sr` agree on one, as Confluent's do.

The group's leader names the writer in everybody's assignment: the one of before if it is still there, else the first
by its address. A member that does not hear from the coordinator for a session's length takes no writer for known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.client.address import ClusterAddress
from ottla.client.membership import Assigned, Membership, Protocol, Timing

_PROTOCOL_TYPE, _PROTOCOL = "sr", "v0"
_VERSION = 1


class Identity(NamedTuple):
    """Where an instance is reached by the others."""

    host: str
    port: int
    scheme: str = "http"
    is_eligible: bool = True

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def encode(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
        }

    @staticmethod
    def decode(tree: Any) -> Identity | None:
        """None for what is none: whoever may read the group may join it, and say what he likes."""
        try:
            is_eligible = bool(tree.get("master_eligibility", tree.get("leader_eligibility", True)))
            return Identity(str(tree["host"]), int(tree["port"]), str(tree.get("scheme", "http")), is_eligible)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


# None: nobody is known to write.
OnWriter = Callable[[Identity | None], None]


def choose(members: dict[str, Identity], last: Identity | None) -> str | None:
    """The member that writes."""
    eligible = {member: identity for member, identity in members.items() if identity.is_eligible}
    for member, identity in eligible.items():
        if identity == last:
            return member
    return min(eligible, key=lambda member: (eligible[member].url, member), default=None)


class Election:
    """`on_writer` is called in the membership's thread."""

    def __init__(
        self,
        address: ClusterAddress,
        group: str,
        identity: Identity,
        on_writer: OnWriter,
        *,
        session_timeout_ms: int,
        heartbeat_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        self._identity = identity
        self._on_writer = on_writer
        self._last: Identity | None = None
        self._membership = Membership(
            address,
            group,
            Protocol(_PROTOCOL_TYPE, _PROTOCOL, self._metadata, self._assignments, self._learn),
            Timing(session_timeout_ms, heartbeat_ms, rebalance_timeout_ms),
            client_id="ottla-registry",
            what="the group of registries",
        )

    def start(self) -> None:
        self._membership.start()

    def stop(self) -> None:
        self._membership.stop()

    def again(self) -> None:
        """Somebody else writes, though we thought that we do: ask the group."""
        self._membership.again()

    # --- in the membership's thread

    def _metadata(self) -> bytes:
        return json.dumps(self._identity.encode()).encode()

    def _assignments(self, told: Mapping[str, bytes]) -> dict[str, bytes]:
        found = {member: Identity.decode(_tree(metadata)) for member, metadata in told.items()}
        members = {member: identity for member, identity in found.items() if identity is not None}
        writer = choose(members, self._last)
        tree = {
            "version": _VERSION,
            "error": 0,
            "master": writer,
            "master_identity": members[writer].encode() if writer is not None else None,
        }
        return dict.fromkeys(told, json.dumps(tree).encode())

    def _learn(self, assigned: Assigned | None) -> None:
        if assigned is None:
            self._on_writer(None)
            return
        tree = _tree(assigned.assignment)
        writer = tree.get("master_identity") or tree.get("leader_identity")
        self._last = Identity.decode(writer)
        self._on_writer(self._last)


def _tree(data: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
